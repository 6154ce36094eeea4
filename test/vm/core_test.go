// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// objects returns all eBPF objects that an agent and "teescope profile record" load.
func objects(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir("../../internal", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return fs.SkipDir
		case strings.HasSuffix(name, ".bpf.o"):
			all = append(all, name)
		}
		return nil
	})
	if err != nil || len(all) < 7 {
		t.Fatalf("found the objects %q: %v", all, err)
	}
	return all
}

// typesOf lists kernels without an available package: Ubuntu's 5.15, the oldest supported one, and a 5.18. Their types
// come from Go modules. docs/decisions/kernels.md explains how these kernels were identified, and which other sources
// were examined.
var typesOf = []struct {
	kernel, module, sum, file string
	functions                 bool     // the kernel's functions are listed too
	sgx                       bool     // the kernel has the SGX driver
	absent                    []string // missing hooks; the probes have others
	unknown                   []string // missing fields, by their indices
	helpers                   []string // missing helpers, with the programs that then work without them; a probe reports it
}{
	{
		kernel: "5.15", module: "github.com/grafana/beyla@v1.0.0", sum: "h1:SeSLTrsbpmr2MW8TBwlsv9qjF+ysEgVf6zHKc4shZN0=",
		file: "bpf/headers/vmlinux_amd64.h", sgx: true, absent: []string{"block_io_start", "mm_filemap_get_pages", "writeback_dirty_folio"},
		unknown: []string{
			"folio[0:0]", "folio[0:1]", "folio___memdesc[0:0:0]", "folio___nr[0:0]", // the kernel has no folios
			"kernfs_node___rcu[0:0]", "mm_struct[0:0:0:0]", "mm_struct[0:0:0:1]", "mm_struct[0:0:1:0]", "mm_struct[0:0:1:1]",
			"mm_struct[0:0:3:0]", "mm_struct[0:0:3:1]", "rqf_flags[0]", "rqf_flags[1]", "task_struct[0:0:1]",
		},
		helpers: []string{
			// Stacks are walked by frame pointers (bpf.CanWalkStacks).
			"aex_device: FnLoop", "aex_device: FnLoop",
			"aex_function: FnLoop", "aex_function: FnLoop",
			"aex_function_single: FnLoop", "aex_function_single: FnLoop",
			"aex_page_fault: FnLoop", "aex_page_fault: FnLoop",
			"aex_reschedule: FnLoop", "aex_reschedule: FnLoop",
			"aex_timer: FnLoop", "aex_timer: FnLoop",
			"aex_work: FnLoop", "aex_work: FnLoop",
			"call_ends: FnLoop", "call_ends: FnLoop", "function_called: FnLoop", "function_called: FnLoop",
			"function_called_multi: FnLoop", "function_called_multi: FnLoop",
			"guests_mapped: FnLoop", "guests_opened: FnLoop",
			"mapped_by: FnFindVma", "mapped_by: FnLoop", // profiles of calls find the processes of a file in their mappings
			"mapped_inode: FnFindVma", // probe sgx_vepc_found; the kernel shows the inode in mappings
			// Stacks again.
			"take_sample: FnLoop", "take_sample: FnLoop",
			"threads_switch: FnLoop", "threads_switch: FnLoop",
		},
	},
	{
		kernel: "5.18", module: "github.com/cilium/ebpf@v0.9.0", sum: "h1:ldiV+FscPCQ/p3mNEV4O02EPbUZJFsoEtHvIr9xLTvk=",
		file: "btf/testdata/vmlinux-btf.gz", functions: true, absent: []string{"__set_memory_enc_pgtable", "accept_memory", "block_io_start", "mm_filemap_get_pages", "tdx_handle_virt_exception", "vc_raw_handle_exception", "writeback_dirty_page"},
		unknown: []string{
			"cgroup_subsys_id[1]", // the kernel has no memory controller
			"folio[0:1]", "folio___memdesc[0:0:0]", "folio___nr[0:0]",
			"kernfs_node___rcu[0:0]", "mm_struct[0:0:0:0]", "mm_struct[0:0:0:1]", "mm_struct[0:0:1:0]", "mm_struct[0:0:1:1]",
			"mm_struct[0:0:3:0]", "mm_struct[0:0:3:1]",
			"mm_struct___owned[0:1]", // the owner, which the memory controller needs
			"rqf_flags[0]", "rqf_flags[1]", "task_struct___cpu[0:0]",
		},
	},
}

// unread are tracepoints whose arguments are not read, or are a page or a folio that is read as its kernel declares it.
var unread = []string{"mm_filemap_add_to_page_cache", "writeback_dirty_folio", "writeback_dirty_page", "block_dirty_buffer"}

// before has the arguments that a tracepoint had in older kernels, for which its program has a branch, or which it does not read.
var before = map[string]string{"mark_victim": "*, signed 4, ", "block_rq_complete": "*, *request, signed 4, unsigned 4, "}

// TestTypesOfOlderKernels relocates the programs to the types of kernels that cannot be booted here.
func TestTypesOfOlderKernels(t *testing.T) {
	own, err := btf.LoadKernelSpec()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range typesOf {
		t.Run(k.kernel, func(t *testing.T) {
			specs := load(t, k.sgx)
			types := kernelTypes(t, filepath.Join(module(t, k.module, k.sum), k.file), specs)
			absent, unknown := map[string]bool{}, map[string]bool{}
			var lacking []string
			for _, spec := range specs {
				for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
					p := spec.Programs[name]
					if hook := missing(t, types, own, p.SectionName, k.functions); hook != "" {
						absent[hook] = true
					}
					for _, field := range relocate(t, types, p) {
						unknown[field] = true
					}
					lacking = append(lacking, helpers(t, types, p)...)
				}
				for name, m := range spec.Maps {
					if !hasValue(t, types, "bpf_map_type", int64(m.Type)) {
						t.Errorf("map %s: the kernel has no %v", name, m.Type)
					}
				}
			}
			if got := slices.Sorted(maps.Keys(absent)); !slices.Equal(got, k.absent) {
				t.Errorf("absent hooks: %q, want %q", got, k.absent)
			}
			if got := slices.Sorted(maps.Keys(unknown)); !slices.Equal(got, k.unknown) {
				t.Errorf("absent fields: %q, want %q", got, k.unknown)
			}
			if slices.Sort(lacking); !slices.Equal(lacking, k.helpers) {
				t.Errorf("absent helpers: %q, want %q", lacking, k.helpers)
			}
		})
	}
}

// load reads the objects. It includes that of the SGX driver only for a kernel with the driver.
func load(t *testing.T, sgx bool) []*ebpf.CollectionSpec {
	t.Helper()
	var specs []*ebpf.CollectionSpec
	for _, object := range objects(t) {
		if !sgx && strings.HasSuffix(object, "/sgx.bpf.o") {
			continue
		}
		spec, err := ebpf.LoadCollectionSpec(object)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, spec)
	}
	return specs
}

// module downloads a module without making it a dependency, and returns its path.
func module(t *testing.T, path, sum string) string {
	t.Helper()
	var answer struct{ Dir, Sum, Error string }
	text := output(t, t.TempDir(), "go", "mod", "download", "-json", path)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Sum != sum {
		t.Fatalf("%s has the sum %q, want %q (%v, %s)", path, answer.Sum, sum, err, answer.Error)
	}
	return answer.Dir
}

// kernelTypes reads the types of a kernel from a compressed dump, or from a C header made from one.
func kernelTypes(t *testing.T, file string, specs []*ebpf.CollectionSpec) *btf.Spec {
	t.Helper()
	if strings.HasSuffix(file, ".h") {
		return compile(t, file, specs)
	}
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(io.LimitReader(unpacked, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	types, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// relocated matches the type in the description of a relocation.
var relocated = regexp.MustCompile(`(Struct|Union|Enum|Typedef):"(\w+)"(\[[\d:]+\])`)

// compile makes types from a header. A compiler describes only used types, so the source uses each type that the
// programs need.
func compile(t *testing.T, header string, specs []*ebpf.CollectionSpec) *btf.Spec {
	t.Helper()
	wanted := map[string]bool{"enum bpf_func_id": true, "enum bpf_map_type": true}
	text, err := os.ReadFile(header)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs(specs) {
		if _, name, ok := strings.Cut(p.SectionName, "iter/"); ok && bytes.Contains(text, []byte("struct bpf_iter__"+name+" {")) {
			wanted["struct bpf_iter__"+name] = true
		}
		if _, name, ok := strings.Cut(p.SectionName, "tp_btf/"); ok && bytes.Contains(text, []byte("btf_trace_"+name+")")) {
			wanted["btf_trace_"+name] = true
		}
		for _, r := range relocations(p) {
			kind := relocated.FindStringSubmatch(r.String())
			if kind == nil {
				t.Fatalf("%s: unknown relocation %v", p.Name, r)
			}
			name, _, _ := strings.Cut(kind[2], "___")
			if kind[1] != "Typedef" {
				name = strings.ToLower(kind[1]) + " " + name
				if !bytes.Contains(text, []byte(name+" {")) {
					continue // the kernel does not have it
				}
			}
			wanted[name] = true
		}
	}
	var source strings.Builder
	fmt.Fprintf(&source, "#include %q\n", header)
	for n, name := range slices.Sorted(maps.Keys(wanted)) {
		fmt.Fprintf(&source, "%s v%d;\n", name, n)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "types.c"), []byte(source.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	output(t, dir, "clang-14", "-target", "bpf", "-g", "-O2", "-Wno-everything", "-c", "types.c", "-o", "types.o")
	types, err := btf.LoadSpec(filepath.Join(dir, "types.o"))
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func programs(specs []*ebpf.CollectionSpec) []*ebpf.ProgramSpec {
	var all []*ebpf.ProgramSpec
	for _, spec := range specs {
		all = slices.AppendSeq(all, maps.Values(spec.Programs))
	}
	return all
}

func relocations(p *ebpf.ProgramSpec) []*btf.CORERelocation {
	var all []*btf.CORERelocation
	for i := range p.Instructions {
		if r := btf.CORERelocationMetadata(&p.Instructions[i]); r != nil {
			all = append(all, r)
		}
	}
	return all
}

// relocate relocates a program and returns the absent fields. The program must check whether a field of this type
// exists. Only then does the verifier remove the reads of an absent field. The hierarchy that names workloads is read
// from the machine.
func relocate(t *testing.T, types *btf.Spec, p *ebpf.ProgramSpec) []string {
	t.Helper()
	all := relocations(p)
	fixups, err := btf.CORERelocate(all, []*btf.Spec{types}, binary.LittleEndian, func(btf.Type) (btf.TypeID, error) { return 1, nil })
	if err != nil {
		t.Errorf("fitting %s: %v", p.Name, err)
		return nil
	}
	var absent []string
	asks := map[string]bool{"cgroup_subsys_id": true}
	for i, f := range fixups {
		kind := relocated.FindStringSubmatch(all[i].String())
		base, _, _ := strings.Cut(kind[2], "___")
		asks[base] = asks[base] || strings.Contains(f.String(), "exists")
		if strings.Contains(f.String(), "poison") {
			absent = append(absent, kind[2]+kind[3])
		}
	}
	for _, field := range absent {
		base, _, _ := strings.Cut(field, "[")
		if base, _, _ = strings.Cut(base, "___"); !asks[base] {
			t.Errorf("%s reads %s without a check for its existence", p.Name, field)
		}
	}
	return absent
}

// helpers returns the functions that a program calls and that the kernel's list lacks.
func helpers(t *testing.T, types *btf.Spec, p *ebpf.ProgramSpec) (absent []string) {
	t.Helper()
	for _, ins := range p.Instructions {
		if ins.IsBuiltinCall() && !hasValue(t, types, "bpf_func_id", ins.Constant) {
			absent = append(absent, fmt.Sprintf("%s: %v", p.Name, asm.BuiltinFunc(ins.Constant)))
		}
	}
	return absent
}

func hasValue(t *testing.T, types *btf.Spec, enum string, value int64) bool {
	t.Helper()
	var e *btf.Enum
	if err := types.TypeByName(enum, &e); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(e.Values, func(v btf.EnumValue) bool {
		return int64(v.Value) == value && !strings.HasPrefix(v.Name, "__")
	})
}

// missing returns the hook of a section that the kernel lacks. The arguments of a tracepoint must begin as this
// kernel's do.
func missing(t *testing.T, types, own *btf.Spec, section string, functions bool) string {
	t.Helper()
	kind, name, _ := strings.Cut(section, "/")
	var f *btf.Func
	var err error
	switch {
	case kind == "tp_btf":
		var is, want string
		if is, err = arguments(types, name); err == nil {
			want, err = arguments(own, name)
			known := is == before[name] || slices.Contains(unread, name)
			if err == nil && !known && !strings.HasPrefix(is, want) && !strings.HasPrefix(want, is) {
				t.Errorf("tracepoint %s has the arguments %s, want %s", name, is, want)
			}
			err = nil // this kernel may lack a tracepoint of an older one
		}
	case kind == "iter":
		var s *btf.Struct
		err = types.TypeByName("bpf_iter__"+name, &s)
	case functions && (kind == "fentry" || kind == "fexit" || kind == "kprobe" || kind == "kretprobe"):
		err = types.TypeByName(name, &f)
	}
	if errors.Is(err, btf.ErrNotFound) {
		return name
	} else if err != nil {
		t.Errorf("%s: %v", section, err)
	}
	return ""
}

// arguments returns the types of a tracepoint's arguments.
func arguments(types *btf.Spec, tracepoint string) (string, error) {
	var def *btf.Typedef
	if err := types.TypeByName("btf_trace_"+tracepoint, &def); err != nil {
		return "", err
	}
	pointer, ok := def.Type.(*btf.Pointer)
	if !ok {
		return "", fmt.Errorf("%v is not a pointer", def.Type)
	}
	proto, ok := pointer.Target.(*btf.FuncProto)
	if !ok {
		return "", fmt.Errorf("%v is not a function", pointer.Target)
	}
	text := ""
	for _, p := range proto.Params {
		text += argument(p.Type) + ", "
	}
	return text, nil
}

// argument describes a type independently of the compiler, because compilers name numbers differently.
func argument(of btf.Type) string {
	switch of := btf.UnderlyingType(of).(type) {
	case *btf.Pointer:
		return "*" + argument(of.Target)
	case *btf.Int:
		if of.Size == 1 {
			return "byte" // the kernel's char is unsigned since 6.2
		}
		return fmt.Sprint(of.Encoding, of.Size)
	default:
		return of.TypeName()
	}
}
