/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A USDT probe of the provider "app", as sys/sdt.h writes it, and the semaphore of its guarded ones. */
#define PROBE(name, semaphore, args, ...)                                                          \
	asm volatile("990: nop\n"                                                                  \
		     ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                 \
		     ".balign 4\n"                                                                 \
		     ".4byte 992f-991f, 994f-993f, 3\n"                                            \
		     "991: .asciz \"stapsdt\"\n"                                                   \
		     "992: .balign 4\n"                                                            \
		     "993: .8byte 990b\n"                                                          \
		     ".8byte _.stapsdt.base\n"                                                     \
		     ".8byte " semaphore "\n"                                                      \
		     ".asciz \"app\"\n"                                                            \
		     ".asciz \"" name "\"\n"                                                       \
		     ".asciz \"" args "\"\n"                                                       \
		     "994: .balign 4\n"                                                            \
		     ".popsection\n"                                                               \
		     ".ifndef _.stapsdt.base\n"                                                    \
		     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"       \
		     ".weak _.stapsdt.base\n"                                                      \
		     ".hidden _.stapsdt.base\n"                                                    \
		     "_.stapsdt.base: .space 1\n"                                                  \
		     ".size _.stapsdt.base,1\n"                                                    \
		     ".popsection\n"                                                               \
		     ".endif\n" ::__VA_ARGS__)

unsigned short app_guarded_semaphore __attribute__((section(".probes"), used));
