// SPDX-License-Identifier: Apache-2.0
/* Each line of input is a number of ECALLs and of OCALLs in each. */
#include <stdio.h>

long occlum_pal_create_process(long ocalls);

int main(void)
{
	long number, each;

	while (scanf("%ld %ld", &number, &each) == 2) {
		for (long i = 0; i < number; i++)
			occlum_pal_create_process(each);
		printf("%ld\n", number);
		fflush(stdout);
	}
	return 0;
}
