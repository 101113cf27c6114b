//go:build linux && amd64

package linux

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-delve/delve/pkg/dwarf/frame"
	"golang.org/x/arch/x86/x86asm"
	"golang.org/x/sys/unix"

	"mirador/omis/code/x86/detour"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// places are addresses of instructions in a module.
type places struct {
	entries, exits []uint64 // where functions begin, and where they return
	all            []uint64
}

// placesOf reads the instructions of a module, whose functions it finds by the unwind tables.
func placesOf(t *testing.T, m node.Module) (p places) {
	t.Helper()
	f, err := elf.Open(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, at := f.Section(".eh_frame"), uint64(0)
	if s != nil {
		at = s.Addr
	} else if s = f.Section(".debug_frame"); s == nil {
		return p
	}
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	list, err := frame.Parse(data, binary.LittleEndian, 0, 8, at)
	if err != nil {
		t.Fatal(err)
	}
	for _, function := range list {
		p.entries = append(p.entries, function.Begin()+m.Bias)
		code := codeAt(f, function.Begin(), function.End())
		for at := 0; at < len(code); {
			if detour.IsLandingPad(code[at:]) {
				at += detour.LandingPad
				continue
			}
			inst, err := detour.Decode(code[at:])
			if err != nil {
				break
			}
			addr := function.Begin() + uint64(at) + m.Bias
			p.all = append(p.all, addr)
			if inst.Op == x86asm.RET {
				p.exits = append(p.exits, addr)
			}
			at += inst.Len
		}
	}
	return p
}

func codeAt(f *elf.File, begin, end uint64) []byte {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && begin >= p.Vaddr && end <= p.Vaddr+p.Filesz {
			code := make([]byte, end-begin)
			if _, err := p.ReadAt(code, int64(begin-p.Vaddr)); err == nil {
				return code
			}
		}
	}
	return nil
}

const bashScript = `f() { local i; for ((i=0;i<3000;i++)); do x=$((x*31+i)); s="$s${x:0:1}"; done; }
f; echo ${#s} $x
for w in $s; do case $w in *5*) echo ${w//5/x} | wc -c;; esac; done
trap 'echo caught' USR1; kill -USR1 $$
printf '%s\n' {1..500} | sort -n | tail -1
exit
`

const pythonScript = `import json, re, hashlib, zlib, threading
d = {str(i): [i*i, {'k': i/7}] for i in range(3000)}
s = json.dumps(d, sort_keys=True)
print(hashlib.sha256(s.encode()).hexdigest(), len(zlib.compress(s.encode())))
print(len(re.findall(r'\d+', s)), json.loads(s) == d)
def g(n):
  try:
    return g(n-1) if n else 1/0
  except ZeroDivisionError as e:
    raise ValueError(n) from e
try:
  g(50)
except ValueError as e: print(e)
l = []
ts = [threading.Thread(target=lambda i=i: l.append(sum(range(i*1000)))) for i in range(20)]
for t in ts: t.start()
for t in ts: t.join()
print(sorted(l))
`

// TestPatchEverything patches the entries and the returns of all functions of programs and of their
// libraries. The programs print the same as without patches.
func TestPatchEverything(t *testing.T) {
	for _, p := range []struct {
		script string
		argv   []string
	}{
		{bashScript, []string{"/bin/bash", "--norc"}},
		{pythonScript, []string{"/usr/bin/python3", "-"}},
	} {
		t.Run(p.argv[0], func(t *testing.T) {
			alone := exec.Command(p.argv[0], p.argv[1:]...)
			alone.Stdin = bytes.NewBufferString(p.script)
			want, err := alone.Output()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(p.argv[0], p.argv[1:]...)
			var out, complaints bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &complaints
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				cmd.Process.Kill()
				cmd.Wait()
			})
			// When the program reads its input, it has loaded its libraries.
			eventually(t, "the program reads its input", func() bool {
				call, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", cmd.Process.Pid))
				return strings.HasPrefix(string(call), fmt.Sprintf("%d 0x0 ", unix.SYS_READ))
			})
			calls := patchEverything(t, cmd.Process.Pid)
			if _, err := in.Write([]byte(p.script)); err != nil {
				t.Fatal(err)
			}
			in.Close()
			if err := cmd.Wait(); err != nil || out.String() != string(want) {
				t.Errorf("%v: got\n%s%s\nwant\n%s", err, out.String(), complaints.String(), want)
			}
			if n := calls(); n < 10000 {
				t.Errorf("%d calls and returns", n)
			}
		})
	}
}

// patchEverything patches a process and returns a function that returns the number of counted executions.
func patchEverything(t *testing.T, pid int) (sum func() uint64) {
	t.Helper()
	n := openNode(t)
	id, err := procIdentify(pid)
	if err != nil {
		t.Fatal(err)
	}
	g, err := n.Ground(id)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := n.Modules(id)
	if err != nil {
		t.Fatal(err)
	}
	var addrs []uint64
	for _, m := range modules {
		p := placesOf(t, m)
		addrs = append(append(addrs, p.entries...), p.exits...)
	}
	list := everywhere(g, addrs)
	begin := time.Now()
	made, _ := n.Patch(id, list)
	took := time.Since(begin)
	made = slices.DeleteFunc(made, func(p node.Patched) bool { return p == nil })
	t.Logf("%d of %d in %v, of which the process stood %v", len(made), len(list), took, n.grounds.of(id).stood)
	if len(made) < len(list)*9/10 {
		t.Errorf("%d of %d places have code", len(made), len(list))
	}
	activate(t, made)
	return func() (sum uint64) {
		for i := range list {
			sum += counted(g, uint64(i)*64)
		}
		return sum
	}
}

// TestPatchShapes patches all instructions of a program that is compiled in many ways and interrupted by
// signals all the time.
func TestPatchShapes(t *testing.T) {
	for _, flags := range []string{
		"-O0", "-O2", "-O3 -mavx2 -ffast-math", "-Os -no-pie", "-O1 -static-pie", "-O2 -fcf-protection=full",
		"-O2 -flto -s", "-O2 -fpatchable-function-entry=5", "Go",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			var maze string
			if flags == "Go" {
				maze = buildGo(t, "goroutines")
			} else {
				maze = build(t, "maze.c", append(strings.Fields(flags), "-w")...)
			}
			want := subject.Alone(t, maze)
			n := openNode(t)
			g := start(t, maze)
			ground, err := n.Ground(g.ID)
			if err != nil {
				t.Fatal(err)
			}
			modules, err := n.Modules(g.ID)
			if err != nil {
				t.Fatal(err)
			}
			p := placesOf(t, modules[0])
			if strings.Contains(flags, "static") || flags == "Go" { // the module includes the C library or Go's runtime
				p.all = slices.Concat(p.entries, p.exits)
			}
			made, errs := n.Patch(g.ID, everywhere(ground, p.all))
			for i, err := range errs {
				if err == nil && !made[i].Covers(p.all[i]) && !made[i].Covers(p.all[i]+detour.LandingPad) {
					t.Errorf("%#x is not covered", p.all[i])
				}
			}
			made = slices.DeleteFunc(made, func(p node.Patched) bool { return p == nil })
			activate(t, made)
			g.Begin()
			if got := g.Line(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			t.Logf("%d of %d", len(made), len(p.all))
			if err := n.Unpatch(g.ID, made); err != nil {
				t.Error(err)
			}
			checkText(t, g)
		})
	}
}

// patchBriefly inserts patches and removes them after a millisecond. It returns the number of inserted
// patches and the errors of the others.
func patchBriefly(t *testing.T, n *Node, g *target, list []node.Patch) (placed int, errs []error) {
	t.Helper()
	made, errs := n.Patch(g.ID, list)
	made = slices.DeleteFunc(made, func(p node.Patched) bool { return p == nil })
	activate(t, made)
	time.Sleep(time.Millisecond)
	if err := n.Unpatch(g.ID, made); err != nil {
		t.Error(err)
	}
	return len(made), errs
}

// TestPatchStorm patches all instructions of such a program and removes the patches, again and again, while
// signals interrupt the program there.
func TestPatchStorm(t *testing.T) {
	maze := build(t, "maze.c", "-O2", "-w")
	const rounds = "60000"
	want := subject.Alone(t, maze, rounds)
	n := openNode(t)
	g := start(t, maze, rounds)
	ground, err := n.Ground(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := n.Modules(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	list := everywhere(ground, placesOf(t, modules[0]).all)
	g.Begin()
	for range 20 {
		if placed, _ := patchBriefly(t, n, g, list); placed < len(list)*9/10 {
			t.Errorf("%d of %d", placed, len(list))
		}
	}
	checkText(t, g)
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
