// SPDX-License-Identifier: Apache-2.0
// Each line of input is a number of milliseconds. It spends so much CPU time in templates of the C++ library and closures, and
// prints a line.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

static double used()
{
	return double(clock()) / CLOCKS_PER_SEC;
}

static void work(double seconds)
{
	std::mt19937 random(1);
	double until = used() + seconds;
	size_t sum = 0;

	while (used() < until) {
		std::vector<std::string> names(2000);
		std::map<std::string, std::function<int(int)>> by;

		for (auto &name : names)
			name = std::to_string(random());
		std::sort(names.begin(), names.end(), [](const auto &a, const auto &b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
		for (auto &name : names)
			by[name] = [&](int n) { return n + int(name.size()); };
		for (auto &entry : by)
			sum += entry.second(1);
	}
	printf("0 0 0 %zu\n", sum % 2);
	fflush(stdout);
}

int main()
{
	double milliseconds;

	while (scanf("%lf", &milliseconds) == 1)
		work(milliseconds / 1e3);
	return 0;
}
