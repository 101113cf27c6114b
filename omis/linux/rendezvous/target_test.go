//go:build linux && amd64

package rendezvous

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// limit is how long anything may take that cannot be waited for otherwise.
const limit = 30 * time.Second

func TestMain(m *testing.M) {
	if spec := os.Getenv(monitorEnv); spec != "" {
		runMonitor(spec)
		return
	}
	goleak.VerifyTestMain(m)
}

// build compiles party once for a test.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "party")
	args := append([]string{"-O2", "-g", "-pthread", "-o", out, "testdata/party.c"}, flags...)
	if msg, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, msg)
	}
	return out
}

// party is a running target.
type party struct {
	t                   testing.TB
	path                string
	cmd                 *exec.Cmd
	in                  io.WriteCloser
	lines               chan string
	work, middle, plain uint64
}

func start(t testing.TB, path string, args ...string) *party {
	t.Helper()
	p := &party{t: t, path: path, cmd: exec.Command(path, args...), lines: make(chan string, 16)}
	p.cmd.Stderr = os.Stderr
	p.in, _ = p.cmd.StdinPipe()
	out, _ := p.cmd.StdoutPipe()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	if _, err := fmt.Sscanf(p.line(), "ready %v %v %v", &p.work, &p.middle, &p.plain); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *party) line() string {
	p.t.Helper()
	select {
	case s, ok := <-p.lines:
		if !ok {
			p.t.Fatalf("the target said nothing more: %v", p.cmd.Wait())
		}
		return strings.TrimSpace(s)
	case <-time.After(limit):
		p.t.Fatal("the target hangs")
		return ""
	}
}

func (p *party) begin() { fmt.Fprintln(p.in) }

func (p *party) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// finish waits for the target's last line and its end.
func (p *party) finish() string {
	p.t.Helper()
	last := p.line()
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("the target ended with %v after %q", err, last)
	}
	return last
}

// expected is what a target says when nobody watches.
func expected(t testing.TB, path string, args ...string) string {
	t.Helper()
	p := start(t, path, args...)
	p.begin()
	return p.finish()
}

// function reads the function around an address of a running program from its file.
func function(path string, pid int, addr uint64) (Function, error) {
	f, err := elf.Open(path)
	if err != nil {
		return Function{}, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return Function{}, err
	}
	bias, err := loadBias(path, pid, f)
	if err != nil {
		return Function{}, err
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || addr-bias < s.Value || addr-bias >= s.Value+s.Size {
			continue
		}
		code := make([]byte, s.Size)
		section := f.Sections[s.Section]
		_, err := section.ReadAt(code, int64(s.Value-section.Addr))
		return Function{s.Value + bias, code}, err
	}
	return Function{}, fmt.Errorf("no function at %#x", addr)
}
