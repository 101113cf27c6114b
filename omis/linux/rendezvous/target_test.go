//go:build linux && amd64

package rendezvous

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mirador/omis/linux/subject"
)

// limit is the longest time that any step may take.
const limit = 30 * time.Second

// forEver is a patience that never ends in a test, even if the monitor is delayed on a
// busy machine.
const forEver = time.Hour

func TestMain(m *testing.M) {
	if spec := os.Getenv(monitorEnv); spec != "" {
		runMonitor(spec)
		return
	}
	goleak.VerifyTestMain(m)
}

// build compiles testdata/party.c.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	return subject.Compile(t, "party", append([]string{"testdata/party.c"}, flags...)...)
}

// party is a running target.
type party struct {
	*subject.Subject
	t                   testing.TB
	path                string
	work, middle, plain uint64
}

func start(t testing.TB, path string, args ...string) *party {
	t.Helper()
	p := &party{Subject: subject.Start(t, exec.Command(path, args...)), t: t, path: path}
	if _, err := fmt.Sscanf(p.Line(), "ready %v %v %v", &p.work, &p.middle, &p.plain); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *party) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// function reads the function that contains an address of a running program from its
// file.
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
