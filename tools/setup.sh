#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need on Debian 12: packages, node modules, Go modules and the pinned linters.
# With --peers it installs what `make bench-peers` compares with, and nothing else; with --cluster what `make cluster` needs.
# It starts no service: what a package starts is stopped again when it was not running before.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sudo=()
if [ "$(id -u)" -ne 0 ]; then sudo=(sudo); fi

# command or file that proves the package -> package
need=(
	gcc=gcc make=make git=git curl=curl jq=jq strace=strace bpftrace=bpftrace
	clang-14=clang-14 llvm-strip-14=llvm-14 clang-format-14=clang-format-14
	podman=podman runc=runc busybox=busybox-static ip=iproute2
	/usr/include/bpf/bpf_helpers.h=libbpf-dev
	redis-server=redis-server redis-benchmark=redis-tools nginx=nginx-light wrk=wrk
	prometheus=prometheus promtool=prometheus victoria-metrics=victoria-metrics chromium=chromium shellcheck=shellcheck tmux=tmux
	qemu-system-x86_64=qemu-system-x86 cpio=cpio debootstrap=debootstrap
	systemd-analyze=systemd systemd-sysusers=systemd
	pkill=procps ssh-keygen=openssh-client valgrind=valgrind rpm=rpm mkfs.ext4=e2fsprogs
	gcc=gcc "g++=g++" /usr/include/stdio.h=libc6-dev /usr/lib/x86_64-linux-gnu/libelf.so.1=libelf1 xz=xz-utils zstd=zstd
	prometheus-node-exporter=prometheus-node-exporter prometheus-alertmanager=prometheus-alertmanager perf=linux-perf
)
peers=(
	bpftrace=bpftrace perf=linux-perf strace=strace /usr/lib/postgresql=postgresql setpriv=util-linux cc=gcc
	redis-server=redis-server redis-benchmark=redis-tools nginx=nginx-light wrk=wrk
	prometheus=prometheus prometheus-node-exporter=prometheus-node-exporter
)
cluster=(
	etcd=etcd-server containerd=containerd ctr=containerd runc=runc /usr/lib/cni/bridge=containernetworking-plugins ip=iproute2
	busybox=busybox-static redis-server=redis-server ldd=libc-bin qemu-system-x86_64=qemu-system-x86 gcc=gcc xz=xz-utils
)
case ${1-} in
--peers) need=("${peers[@]}") ;;
--cluster) need=("${cluster[@]}") ;;
esac
missing=()
for pair in "${need[@]}"; do
	have=${pair%%=*} package=${pair##*=}
	if [ "${have#/}" != "$have" ]; then
		[ -e "$have" ] || missing+=("$package")
	else
		PATH=$PATH:/usr/sbin:/sbin command -v "$have" >/dev/null || missing+=("$package")
	fi
done

services=(redis-server nginx prometheus victoria-metrics prometheus-node-exporter prometheus-alertmanager podman.socket postgresql etcd containerd)
running() { command -v systemctl >/dev/null && systemctl is-active --quiet "$1" 2>/dev/null; }

if [ "${#missing[@]}" -gt 0 ]; then
	echo "setup: installing ${missing[*]}"
	before=()
	for service in "${services[@]}"; do running "$service" && before+=("$service"); done
	export DEBIAN_FRONTEND=noninteractive
	"${sudo[@]}" apt-get update -q
	"${sudo[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"
	for service in "${services[@]}"; do
		[[ " ${before[*]} " == *" $service "* ]] && continue
		if running "$service"; then "${sudo[@]}" systemctl disable -q --now "$service"; fi
	done
fi

case ${1-} in --peers | --cluster) exit 0 ;; esac

# The stock kernels are looked up by name.
[ -n "$(apt-cache pkgnames linux-image-6)" ] || "${sudo[@]}" apt-get update -q

go mod download
npm --prefix web ci --no-audit --no-fund
make --no-print-directory tools
