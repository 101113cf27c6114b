//go:build linux

package heap

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// program runs testdata/heap.c.
type program struct {
	id  omis.ProcID
	in  io.Writer
	out *bufio.Scanner
}

func start(t *testing.T, env []string, flags ...string) *program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "heap")
	if msg, err := exec.Command("gcc", append(flags, "-O1", "-pthread", "-o", path, "testdata/heap.c")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	cmd := exec.Command(path)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	p := &program{in: in, out: bufio.NewScanner(out)}
	p.tells(t)
	if p.id, err = proc.Identify(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	return p
}

// tells returns the bytes in use according to mallinfo2.
func (p *program) tells(t *testing.T) (mallinfo int64) {
	t.Helper()
	if !p.out.Scan() {
		t.Fatal("the program has ended")
	}
	if _, err := fmt.Sscan(p.out.Text(), &mallinfo); err != nil {
		t.Fatal(err)
	}
	return mallinfo
}

// plain is for programs without an allocator of their own.
func plain(omis.ProcID) bool { return false }

// TestUsedEqualsMallinfo compares what was read with what the allocator says itself, in a
// program that is linked dynamically and in one that is linked statically, and which has
// freed and mapped chunks, small ones and those of other threads.
func TestUsedEqualsMallinfo(t *testing.T) {
	for name, flags := range map[string][]string{"dynamic": nil, "static": {"-static"}} {
		t.Run(name, func(t *testing.T) {
			p := start(t, nil, flags...)
			r := NewReader(plain)
			for _, line := range []string{
				"0 1000 100 0", "0 1000 100 3", "0 1000 2000 2", "0 5 1000000 0", "0 5 1000000 2", "4 1000 500 0", "8 1000 5000 3", "0 3000 64 1",
			} {
				fmt.Fprintln(p.in, line)
				mallinfo := p.tells(t)
				if got, ok := r.Used(p.id); !ok || got != mallinfo {
					t.Errorf("after %q %d bytes are used (known: %t), mallinfo2 says %d", line, got, ok, mallinfo)
				}
			}
		})
	}
}

// TestUsedIsLimited checks that a program with more free chunks than are looked at has at most
// these counted as free.
func TestUsedIsLimited(t *testing.T) {
	p := start(t, nil)
	fmt.Fprintln(p.in, "0 100000 3000 2")
	mallinfo := p.tells(t)
	got, ok := NewReader(plain).Used(p.id)
	if system := int64(100000 * 3100); !ok || got <= mallinfo || got > system {
		t.Errorf("%d bytes are used (known: %t), mallinfo2 says %d", got, ok, mallinfo)
	}
}

// TestOthersAreUnknown checks that processes with another allocator have no value. A library is
// recognised by its name.
func TestOthersAreUnknown(t *testing.T) {
	library := filepath.Join(t.TempDir(), "libjemalloc.so.2")
	if msg, err := exec.Command("gcc", "-shared", "-o", library, "-x", "c", os.DevNull).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	p := start(t, []string{"LD_PRELOAD=" + library})
	if got, ok := NewReader(plain).Used(p.id); ok {
		t.Errorf("%d bytes", got)
	}
	if _, ok := NewReader(plain).Used(omis.ProcID{PID: 1 << 22}); ok {
		t.Error("a process that does not exist has a heap")
	}
}
