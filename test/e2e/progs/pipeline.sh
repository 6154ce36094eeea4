#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pipeline.sh N SEQ WC: runs N pipelines of two programs each.
i=0
while [ "$i" -lt "$1" ]; do
	"$2" 10 | "$3" -l >/dev/null
	i=$((i + 1))
done
