// SPDX-License-Identifier: Apache-2.0
// Reads an enclave's file: a position-independent ELF object without relocations.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "urts.h"

static bool add_segment(struct image *image, FILE *f, const Elf64_Phdr *p)
{
	struct segment *s = &image->segments[image->count];
	uint64_t first = p->p_vaddr & ~(PAGE - 1), end = p->p_vaddr + p->p_memsz;

	if (image->count == 8)
		return false;
	s->offset = first;
	s->pages = (end - first + PAGE - 1) / PAGE;
	s->permissions = (p->p_flags & PF_R ? 1 : 0) | (p->p_flags & PF_W ? 2 : 0) |
			 (p->p_flags & PF_X ? 4 : 0);
	// The driver requires that the source of executable pages is mapped executable.
	s->data = mmap(NULL, s->pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	if (s->data == MAP_FAILED)
		return false;
	image->count++;
	if (image->pages < first / PAGE + s->pages)
		image->pages = first / PAGE + s->pages;
	return !fseek(f, p->p_offset, SEEK_SET) &&
	       fread(s->data + p->p_vaddr - first, 1, p->p_filesz, f) == p->p_filesz;
}

static bool load(struct image *image, FILE *f)
{
	Elf64_Ehdr header;
	Elf64_Phdr p;

	if (fread(&header, sizeof(header), 1, f) != 1 || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_type != ET_DYN)
		return false;
	image->entry = header.e_entry;
	for (int i = 0; i < header.e_phnum; i++) {
		if (fseek(f, header.e_phoff + i * sizeof(p), SEEK_SET) ||
		    fread(&p, sizeof(p), 1, f) != 1)
			return false;
		if (p.p_type == PT_LOAD && p.p_memsz && !add_segment(image, f, &p))
			return false;
	}
	return image->count > 0;
}

bool image_load(struct image *image, const char *file)
{
	FILE *f = fopen(file, "rb");
	bool ok;

	memset(image, 0, sizeof(*image));
	if (!f)
		return false;
	ok = load(image, f);
	fclose(f);
	if (!ok)
		image_free(image);
	return ok;
}

void image_free(struct image *image)
{
	for (int i = 0; i < image->count; i++)
		munmap(image->segments[i].data, image->segments[i].pages * PAGE);
	image->count = 0;
}
