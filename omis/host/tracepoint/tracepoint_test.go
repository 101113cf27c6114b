//go:build linux

package tracepoint

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis/linux/subject"
)

// tryEnv makes the test binary try to attach a program and print the result.
const tryEnv = "MIRADOR_TEST_ATTACH"

func TestMain(m *testing.M) {
	if os.Getenv(tryEnv) != "" {
		set, err := count(nil)
		fmt.Println(err)
		set.Close()
		return
	}
	os.Exit(m.Run())
}

// count counts system calls in the first element of a map.
func count(t *testing.T) (*Set, error) {
	set := NewSet("count system calls")
	m, err := set.Map(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return set, err
	}
	err = set.Attach("sys_enter", asm.Instructions{
		asm.LoadMapValue(asm.R1, m.FD(), 0), asm.Mov.Imm(asm.R2, 1), asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, 0), asm.Return(),
	})
	if err != nil || t == nil {
		return set, err
	}
	for range 1000 {
		unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	}
	var n [8]byte
	if err := m.Lookup(uint32(0), &n); err != nil {
		t.Fatal(err)
	}
	if n := binary.LittleEndian.Uint64(n[:]); n < 1000 {
		t.Errorf("counted %d of 1000 system calls", n)
	}
	return set, nil
}

func TestAttach(t *testing.T) {
	set, err := count(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
}

func TestUnknownTracepoint(t *testing.T) {
	set := NewSet("observe nothing")
	defer set.Close()
	err := set.Attach("no_such_tracepoint", asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot observe nothing: ") {
		t.Errorf("error %v", err)
	}
}

func TestMissingCapabilitiesAreNamed(t *testing.T) {
	for _, try := range []struct {
		have []uintptr
		want string
	}{
		{nil, "cannot count system calls: the monitor lacks CAP_BPF and CAP_PERFMON"},
		{[]uintptr{unix.CAP_BPF}, "cannot count system calls: the monitor lacks CAP_PERFMON"},
		{[]uintptr{unix.CAP_PERFMON}, "cannot count system calls: the monitor lacks CAP_BPF"},
		{[]uintptr{unix.CAP_BPF, unix.CAP_PERFMON}, "<nil>"},
	} {
		if out := subject.RunAgain(t, tryEnv+"=1", subject.Nobody(try.have...)); out != try.want {
			t.Errorf("with %v: %s; want %s", try.have, out, try.want)
		}
	}
}
