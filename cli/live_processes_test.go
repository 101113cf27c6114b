package cli

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mirador/omis"
	"mirador/omis/node"
)

// TestCreateLive checks that a new process has the given arguments, environment, files and folder,
// and is stopped at its first instruction, the entry point of the dynamic linker.
func TestCreateLive(t *testing.T) {
	l := startLive(t)
	dir := t.TempDir()
	in, out, errs := filepath.Join(dir, "in"), filepath.Join(dir, "out"), filepath.Join(dir, "err")
	if err := os.WriteFile(in, []byte("input"), 0o600); err != nil {
		t.Fatal(err)
	}
	token := text(l.ask(t, `proc_create([],"/bin/sh",["-c","echo \"$0 $1\"; pwd; echo $WORD; cat; echo wrong >&2","two words","x"],["WORD=value","PWD=%s"],["%s","%s","%s"])`,
		dir, in, out, errs)[0])
	pid, err := strconv.Atoi(text(l.ask(t, "proc_get_info([%s],%#x)", token, node.ProcLocalID)[0]))
	if err != nil {
		t.Fatal(err)
	}
	// The kernel shows the program counter of a thread that is not in a system call.
	place, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
	if err != nil {
		t.Fatal(err)
	}
	if f := strings.Fields(string(place)); f[0] != "-1" || f[2] != fmt.Sprintf("%#x", linkerEntry(t, pid)) {
		t.Errorf("the process is at %q, the linker begins at %#x", f, linkerEntry(t, pid))
	}
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	wantText(t, "argv", fmt.Sprintf("%q", texts(l.ask(t, "proc_get_info([%s],%#x)", token, node.ProcArgv)[0].List)),
		fmt.Sprintf("%q", strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")))
	if b, _ := os.ReadFile(out); len(b) > 0 {
		t.Errorf("the process has written %q already", b)
	}
	ended := l.define(t, "proc_has_terminated([%s]) : print([$proc])", token)
	l.ask(t, "thread_continue([%s])", token)
	ended.await(t, 1)
	for path, want := range map[string]string{out: "two words x\n" + dir + "\nvalue\ninput", errs: "wrong\n"} {
		if b, _ := os.ReadFile(path); string(b) != want {
			t.Errorf("%s: %q, want %q", filepath.Base(path), b, want)
		}
	}
}

// linkerEntry returns the address at which the dynamic linker of a process begins: the base address
// is in the auxiliary vector, the offset in the linker's file.
func linkerEntry(t *testing.T, pid int) uint64 {
	t.Helper()
	auxv, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		t.Fatal(err)
	}
	const base = 7 // AT_BASE
	for ; len(auxv) >= 16; auxv = auxv[16:] {
		if binary.LittleEndian.Uint64(auxv) == base {
			m := regexp.MustCompile(`(?m)^\s+Entry point address:\s+(\S+)$`).FindStringSubmatch(tells(t, "readelf", "-h", "/lib64/ld-linux-x86-64.so.2"))
			entry, _ := strconv.ParseUint(m[1], 0, 64)
			return binary.LittleEndian.Uint64(auxv[8:]) + entry
		}
	}
	t.Fatal("the process has no dynamic linker")
	return 0
}

// TestSignalsAndPrioritiesLive compares with the witness, which reports the thread that received a
// signal, and with ps for priorities.
func TestSignalsAndPrioritiesLive(t *testing.T) {
	l, w := startWitness(t)
	spinner := l.token(t, w.spinner)
	l.ask(t, "thread_send_signal([%s],%d)", spinner, syscall.SIGUSR2)
	w.until("signals", func(said []string) bool { return fmt.Sprint(said) == fmt.Sprintf("[1 12 %d]", w.spinner) })
	l.ask(t, "proc_send_signal([p_1],%d)", syscall.SIGUSR1)
	w.until("signals", func(said []string) bool { return said[0] == "2" && said[1] == "10" })

	nice := func() string {
		return strings.Join(strings.Fields(tells(t, "ps", "-L", "-p", fmt.Sprint(w.pid), "-o", "ni=")), " ")
	}
	own := strings.Fields(nice())[0] // inherited from the test
	l.ask(t, "thread_set_priority([%s],5)", spinner)
	wantText(t, "priorities", nice(), own+" 5 "+own)
	wantText(t, "priority", text(l.ask(t, "thread_get_info([%s],%#x)", spinner, node.ThreadPriority)[0]), "5")
	l.ask(t, "proc_set_priority([p_1],7)")
	wantText(t, "priorities", nice(), "7 7 7")
	wantText(t, "priority", text(l.ask(t, "proc_get_info([p_1],%#x)", node.ProcPriority)[0]), "7")
}

// TestMemoryLive writes and reads blocks, and compares them with gdb and the witness.
func TestMemoryLive(t *testing.T) {
	l, w := startWitness(t)
	want, err := hex.DecodeString(w.says("data", 0)[0])
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		t.Helper()
		wantText(t, what, w.says("data", 0)[0], hex.EncodeToString(want))
		wantText(t, what+", read as one", text(l.ask(t, "proc_read_memory_bin([p_1],%#x,64,64,1)", w.data)[0]), string(want))
		// The request is for three blocks of four bytes, whose beginnings are ten bytes apart.
		blocks := bytes.Join([][]byte{want[2:6], want[12:16], want[22:26]}, nil)
		wantText(t, what+", blocks", text(l.ask(t, "proc_read_memory_bin([p_1],%#x,4,10,3)", w.data+2)[0]), string(blocks))
		numbers := strings.Trim(fmt.Sprint(blocks), "[]")
		wantText(t, what+", numbers", text(l.ask(t, "proc_read_memory([p_1],%#x,4,10,3)", w.data+2)[0]), numbers)
	}
	check("before")
	l.ask(t, "proc_write_memory([p_1],%#x,2,8,[1,2,254,255,5])", w.data+3)
	copy(want[3:], []byte{1, 2})
	copy(want[11:], []byte{254, 255})
	want[19] = 5
	check("written")
	l.ask(t, `proc_write_memory_bin([p_1],%#x,3,20,6#abcdef)`, w.data+40)
	copy(want[40:], "abc")
	copy(want[60:], "def")
	check("written as binary")
	seen := gdb(t, w.pid, w.pid, "(int)data[11]", "(int)data[19]", "(char)data[60]")
	wantText(t, "gdb", fmt.Sprint(seen), "[254 5 100 'd']")
}

// TestProcessInfoLive compares each component with ps and /proc.
func TestProcessInfoLive(t *testing.T) {
	l, w := startWitness(t)
	l.ask(t, "thread_stop([p_1])") // so that nothing changes
	got := l.ask(t, "proc_get_info([p_1],%#x)", node.ProcInvolContSwitch<<1-1)
	if len(got) != 25 {
		t.Fatalf("%d components", len(got))
	}
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", w.pid))
	environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", w.pid))
	words := func(b []byte) string { return strings.ReplaceAll(strings.TrimSuffix(string(b), "\x00"), "\x00", " ") }
	f := strings.Fields(tells(t, "ps", "-p", fmt.Sprint(w.pid), "-o", "pid=,uid=,gid=,ni=,vsz=,min_flt=,maj_flt="))
	memory, _ := strconv.Atoi(f[4])
	kilobytes := func(name string) string {
		n, _ := strconv.Atoi(strings.TrimSuffix(status(t, w.pid, w.pid, name), " kB"))
		return fmt.Sprint(n << 10)
	}
	want := map[node.ProcFields]string{
		node.ProcGlobalID: f[0], node.ProcArgv: words(cmdline), node.ProcUID: f[1], node.ProcGID: f[2],
		node.ProcUserArgv: words(cmdline), node.ProcEnvp: words(environ), node.ProcParent: "u_0", node.ProcMessageQueue: "u_0",
		node.ProcNode: "n_1", node.ProcLocalID: f[0], node.ProcSchedulingState: fmt.Sprint(node.StateStopped), node.ProcPriority: f[3],
		node.ProcMemorySize: fmt.Sprint(memory << 10), node.ProcResidentSize: kilobytes("VmRSS"), node.ProcMaxResidentSize: kilobytes("VmHWM"),
		node.ProcIntResidentSize: "-1", node.ProcMinorPageFaults: f[5], node.ProcMajorPageFaults: f[6], node.ProcSwaps: "-1",
		node.ProcVolContSwitch: total(t, w, "voluntary_ctxt_switches"), node.ProcInvolContSwitch: total(t, w, "nonvoluntary_ctxt_switches"),
	}
	for bit, value := range want {
		wantText(t, fmt.Sprintf("component %#x", bit), text(got[shift(uint32(bit))]), value)
	}
	checkTimes(t, fmt.Sprintf("/proc/%d/stat", w.pid), got[shift(uint32(node.ProcTotalTime))].Float, got[shift(uint32(node.ProcSystemTime))].Float)
	files, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", w.pid))
	for i, name := range []string{"read_bytes", "write_bytes"} {
		m := regexp.MustCompile(`(?m)^` + name + `: (\d+)$`).FindSubmatch(files)
		n, _ := strconv.Atoi(string(m[1]))
		wantText(t, name, text(got[shift(uint32(node.ProcFileInput))+i]), fmt.Sprint(n/512))
	}
}

// shift returns the number of the bit.
func shift(bit uint32) (n int) {
	for ; bit > 1; bit >>= 1 {
		n++
	}
	return n
}

// total returns a sum over the threads of the witness.
func total(t *testing.T, w *witness, name string) string {
	t.Helper()
	sum := 0
	for _, tid := range []int{w.pid, w.spinner, w.waiter} {
		n, err := strconv.Atoi(status(t, w.pid, tid, name))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return fmt.Sprint(sum)
}

// checkTimes compares with fields 14 and 15 of a stat file, which are in hundredths of a second.
func checkTimes(t *testing.T, path string, total, system float64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+2:]))
	user, _ := strconv.ParseFloat(f[11], 64)
	kernel, _ := strconv.ParseFloat(f[12], 64)
	if got, want := total, (user+kernel)/100; got < want-0.03 || got > want+0.03 {
		t.Errorf("total time %v, the kernel says %v", got, want)
	}
	if got, want := system, kernel/100; got < want-0.011 || got > want+0.011 {
		t.Errorf("system time %v, the kernel says %v", got, want)
	}
}

// TestLoaderInfoLive compares the addresses of modules with readelf and /proc, and the addresses of
// sections with gdb.
func TestLoaderInfoLive(t *testing.T) {
	l, w := startWitness(t)
	got := l.ask(t, "proc_get_loader_info([p_1])")
	list := got[1].List
	if n := fmt.Sprint(len(list) / 8); text(got[0]) != n || len(list) < 3*8 {
		t.Fatalf("%s modules, %s are listed", text(got[0]), n)
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", w.pid))
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, "the first module", text(list[0]), exe)
	sections := tells(t, "gdb", "-q", "-nx", "-batch", "-p", fmt.Sprint(w.pid), "-ex", "info files")
	for ; len(list) > 0; list = list[8:] {
		path := text(list[0])
		code, data := segments(t, w.pid, path)
		wantText(t, "the member in "+path, text(list[1]), "")
		wantText(t, "code of "+path, text(omis.List(list[2:4]...)), code)
		wantText(t, "data and bss of "+path, text(omis.List(list[4:8]...)), data)
		in := ` in /\S*/` + regexp.QuoteMeta(filepath.Base(path)) // which may lead there by symbolic links
		if path == exe {
			in = ""
		}
		for name, part := range map[string][]omis.Value{".text": list[2:4], ".data": list[4:6], ".bss": list[6:8]} {
			m := regexp.MustCompile(`(?m)^\s+0x([0-9a-f]+) - 0x([0-9a-f]+) is ` + regexp.QuoteMeta(name) + in + `$`).FindStringSubmatch(sections)
			if m == nil {
				t.Errorf("gdb knows no %s%s", name, in)
				continue
			}
			from, _ := strconv.ParseUint(m[1], 16, 64)
			to, _ := strconv.ParseUint(m[2], 16, 64)
			if start, length := part[0].N, part[1].N; from < start || to > start+length {
				t.Errorf("gdb has %s%s at %#x to %#x, the module is in %#x to %#x", name, in, from, to, start, start+length)
			}
		}
	}
}

// segments returns the addresses of a module according to its program headers and its lowest mapping.
func segments(t *testing.T, pid int, path string) (code, data string) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^([0-9a-f]+)-\S+ \S+ 00000000 .* ` + regexp.QuoteMeta(path) + `$`).FindSubmatch(maps)
	if m == nil {
		t.Fatalf("%s is not in\n%s", path, maps)
	}
	base, _ := strconv.ParseUint(string(m[1]), 16, 64)
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		switch {
		case p.Type != elf.PT_LOAD:
		case p.Flags&elf.PF_X != 0:
			code = fmt.Sprint(base+p.Vaddr, p.Memsz)
		case p.Flags&elf.PF_W != 0:
			data = fmt.Sprint(base+p.Vaddr, p.Filesz, base+p.Vaddr+p.Filesz, p.Memsz-p.Filesz)
		}
	}
	return code, data
}
