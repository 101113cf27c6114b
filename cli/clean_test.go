package cli

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/place/kernel/persist"
)

// aloneEnv makes TestDoctorCleansAll run in its own mount namespace.
const aloneEnv = "MIRADOR_TEST_ALONE"

// TestDoctorCleansAll checks that "doctor --clean-all" removes what killed gateways have left,
// whatever data directories they used, including directories whose names other directories have
// taken, and nothing of a living gateway. The test runs in a process with its own BPF file system:
// in the machine's, it would remove what gateways of other tests have left and need again.
func TestDoctorCleansAll(t *testing.T) {
	t.Parallel()
	if os.Getenv(aloneEnv) == "" {
		cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^TestDoctorCleansAll$")
		cmd.Env = append(os.Environ(), aloneEnv+"=1", mortalEnv+"="+miradorPath)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM}
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestDoctorCleansAll")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if err := unix.Mount("bpf", "/sys/fs/bpf", "bpf", 0, "mode=0700"); err != nil {
		t.Fatal(err)
	}
	dead, moved, living := startCounting(t), startCounting(t), startCounting(t)
	dead.s.kill(t)
	moved.s.kill(t)
	former := living.tally
	living.s.kill(t)
	for _, s := range []*served{moved.s, living.s} { // the folders in the BPF file system keep the names
		if err := os.Rename(s.data(), s.data()+".former"); err != nil {
			t.Fatal(err)
		}
	}
	living.s.await(t, living.s.begin(t))
	living.count(t)
	killed := []counting{dead, moved, {living.s, former, living.plain}}
	for i, c := range killed {
		if bytes.Equal(c.plain, textOf(t, c.tally.PID, c.tally.Cmd.Path)) {
			t.Fatalf("program %d has no probe of the gateway that was killed", i)
		}
	}
	if n := len(persist.All()); n != 4 {
		t.Fatalf("%d folders, want 4", n)
	}

	said := living.s.must(t, "", "doctor", "--clean-all", "--json")
	if strings.Contains(said, "objects of killed gateways") {
		t.Errorf("left: %s", said)
	}
	for i, c := range killed {
		if !bytes.Equal(c.plain, textOf(t, c.tally.PID, c.tally.Cmd.Path)) {
			t.Errorf("program %d still has the probe of a gateway that was killed", i)
		}
	}
	if n := len(persist.All()); n != 1 {
		t.Errorf("%d folders, want only the folder of the living gateway", n)
	}
	living.tally.says("go")
	time.Sleep(20 * time.Millisecond)
	if calls := living.tally.says("stop"); calls == 0 || living.s.counted(t) != calls {
		t.Errorf("%d of %d calls are counted", living.s.counted(t), calls)
	}
}

// counting is a gateway that counts the calls of a program by the kernel placement.
type counting struct {
	s     *served
	tally tally
	plain []byte // the program's code without a probe
}

func startCounting(t *testing.T) counting {
	t.Helper()
	c := counting{s: startServe(t, os.Geteuid(), "--placements", "kernel,trap")}
	c.count(t)
	return c
}

// count starts a program and a probe that counts its calls.
func (c *counting) count(t *testing.T) {
	t.Helper()
	c.tally = startTally(t)
	c.plain = textOf(t, c.tally.PID, c.tally.Cmd.Path)
	c.s.must(t, "", "attach", strconv.Itoa(c.tally.PID))
	c.s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:work"/><metric name="COUNT"/><process id="*"/></instrreq>`)
}
