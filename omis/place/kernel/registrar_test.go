//go:build linux && amd64

package kernel_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/kernel/persist"
)

// crowd is a target with many functions, some of which get uprobes.
type crowd struct {
	t *testing.T
	*rig.Target
	assignment
	before []byte // the code of the functions with uprobes, before they are set
	none   int    // number of bytes in before that have the value int3
	rounds uint64 // how often every function has been called
}

// some is the number of functions with uprobes.
const some = 3000

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{t: t, Target: rig.Start(t, lasting(t, buildMany(t, "-g0")))}
	c.assignment = assign(t, c.Target)
	c.Entry, c.assignment.Exits = c.Func[fmt.Sprint("many_", many-1)], nil
	for i := range some {
		c.assignment.Exits = append(c.assignment.Exits, c.Func[fmt.Sprint("many_", i)])
	}
	c.before = c.code()
	c.none = bytes.Count(c.before, []byte{int3})
	return c
}

func (c *crowd) code() []byte {
	return c.Target.Code(c.assignment.Exits[0], int(c.assignment.Exits[some-1]-c.assignment.Exits[0])+1)
}

func (c *crowd) standing() int { return bytes.Count(c.code(), []byte{int3}) - c.none }

// first returns the first address whose code is not the original, 0 if there is none.
func (c *crowd) first() uint64 {
	now := c.code()
	for i := range now {
		if now[i] != c.before[i] {
			return c.assignment.Exits[0] + uint64(i)
		}
	}
	return 0
}

// isWhole checks that no uprobe stays, and that the functions work. The kernel closes links that were on
// their way to a killed process a little later; uprobes that it leaked would stay for ever.
func (c *crowd) isWhole() {
	c.t.Helper()
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("%d uprobes stand, the first at %#x", c.standing(), c.first())
		}
	})
	rig.Until(c.t, "the code is what it was", func() bool { return bytes.Equal(c.before, c.code()) })
	c.works()
}

// works calls all functions, each of which counts its calls.
func (c *crowd) works() {
	c.t.Helper()
	if got := c.Do("all 0 %d", some); got != fmt.Sprint("done ", some) {
		c.t.Fatalf("the target said %q", got)
	}
	c.rounds++
	counts := make([]byte, 8*some)
	if _, err := proc.ReadMemory(c.PID, c.Func["many_calls"], counts); err != nil {
		c.t.Fatal(err)
	}
	want := binary.LittleEndian.AppendUint64(nil, c.rounds)
	for i := range some {
		if got := counts[8*i:][:8]; !bytes.Equal(got, want) {
			c.t.Fatalf("function %d has counted % x, want % x", i, got, want)
		}
	}
}

// unpin removes the pinned links of a killed monitor.
func (c *crowd) unpin() {
	c.t.Helper()
	links, err := persist.Of(c.Data)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range links.Names() {
		if strings.HasPrefix(name, "link-") {
			err = errors.Join(err, links.Remove(name, link.Link.Close))
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// registrar returns the process that sets uprobes for the monitor.
func (k *keeper) registrar() int {
	k.t.Helper()
	pid, err := strconv.Atoi(k.do("registrar"))
	if err != nil || pid == 0 {
		k.t.Fatalf("the registrar is %d, %v", pid, err)
	}
	return pid
}

// isOver reports whether a process has ended. It may be a zombie.
func isOver(t *testing.T, pid int) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || bytes.Contains(status, []byte("State:\tZ"))
}

// A monitor that is killed while uprobes are set and removed for it leaves no uprobes except the pinned
// ones, and no registrar.
func TestKilledWhileSetting(t *testing.T) {
	c := newCrowd(t)
	log := followKernel(t)
	self := subject.ForAll(t)
	name := fmt.Sprintf("k%d", os.Getpid()) // the name of the process in the kernel's log
	if err := os.Rename(self, filepath.Join(filepath.Dir(self), name)); err != nil {
		t.Fatal(err)
	}
	for range kills {
		k := startKeeper(t, filepath.Join(filepath.Dir(self), name), c.assignment)
		k.do("settle")
		k.want("keep", "kept")
		k.want("place", "placed")
		k.want("remove", "removed")
		registrar := k.registrar()
		k.begin("churn")
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		k.kill()
		rig.Until(t, "the registrar ends", func() bool { return isOver(t, registrar) })
		c.works()
		c.unpin()
		c.isWhole()
	}
	if lines := log.leaks(name); len(lines) > 0 {
		t.Errorf("the kernel says: %s", strings.Join(lines, "; "))
	}
}

// A registrar that is killed is replaced, and what the kernel leaked is removed.
func TestKilledRegistrar(t *testing.T) {
	c := newCrowd(t)
	k := newKeeper(t, c.assignment)
	k.want("settle", "0 orphans")
	k.want("keep", "kept")
	k.want("place", "placed")
	for i := range kills {
		for _, step := range [][2]string{{"remove", "removed"}, {"place", "placed"}} {
			registrar, err := strconv.Atoi(k.do("registrar"))
			if err != nil {
				t.Fatal(err)
			}
			k.begin(step[0])
			time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
			if registrar != 0 { // it may have been killed after its work was done, and is not replaced yet
				_ = syscall.Kill(registrar, syscall.SIGKILL)
			}
			if got := k.next(step[0]); got != step[1] {
				t.Fatalf("%s: %q", step[0], got)
			}
			if step[0] == "remove" {
				c.isWhole()
			}
			c.works()
			c.Do("all %d %d", many-1, many)
		}
		if rows := k.do("rows"); !strings.HasPrefix(rows, fmt.Sprintf("%d ", i+1)) {
			t.Errorf("%s were counted, want %d", rows, i+1)
		}
	}
	k.want("close", "closed")
	c.isWhole()
}

// A stopped registrar is continued, so that no request waits for ever.
func TestStoppedRegistrar(t *testing.T) {
	c := newCrowd(t)
	k := newKeeper(t, c.assignment)
	k.want("keep", "kept")
	k.want("place", "placed")
	if err := syscall.Kill(k.registrar(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	k.want("remove", "removed")
	c.isWhole()
	if err := syscall.Kill(k.registrar(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	k.want("close", "closed")
}

// A registrar that is stopped when its monitor is killed does not block the next monitor.
func TestStoppedRegistrarOfAKilledMonitor(t *testing.T) {
	c := newCrowd(t)
	k := placedKeeper(t, c.assignment)
	registrar := k.registrar()
	if err := syscall.Kill(registrar, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	k.kill()
	k = newKeeper(t, c.assignment)
	began := time.Now()
	k.want("recall", "true true")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the next monitor was ready after %v", took)
	}
	rig.Until(t, "the registrar ends", func() bool { return isOver(t, registrar) })
	k.want("place", "placed")
	k.want("settle", "0 orphans")
	k.want("close", "closed")
	c.isWhole()
}

// Monitor and registrar are killed while uprobes are removed. The next monitor removes what the kernel
// leaked. Some kernels leak nothing.
func TestMend(t *testing.T) {
	c := newCrowd(t)
	left := 0
	for try := 0; try < 20 && left == 0; try++ {
		k := newKeeper(t, c.assignment)
		k.want("settle", "0 orphans")
		k.want("keep", "kept")
		k.want("place", "placed")
		registrar := k.registrar()
		k.begin("remove")
		rig.Until(t, "something is taken out", func() bool { return c.standing() < some })
		k.cmd.Process.Kill() // so that it does not start another registrar
		if err := syscall.Kill(registrar, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		k.kill()
		rig.Until(t, "the registrar ends", func() bool { return isOver(t, registrar) })
		c.unpin()
		left = c.standing()
		k = newKeeper(t, c.assignment)
		k.do("settle")
		c.isWhole()
		k.want("recall", "false false")
		k.kill()
	}
	t.Log(left, "uprobes were left")
	c.isWhole()
}

// kernelLog follows the kernel's log.
type kernelLog struct{ fd int }

// followKernel begins at the end of the log. If the log cannot be read, it has no lines.
func followKernel(t *testing.T) *kernelLog {
	t.Helper()
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Log("the kernel's log cannot be read:", err)
		return &kernelLog{-1}
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.Seek(fd, 0, unix.SEEK_END); err != nil {
		t.Fatal(err)
	}
	return &kernelLog{fd}
}

// leaks returns the lines about uprobes that a process of this name leaked.
func (l *kernelLog) leaks(name string) (lines []string) {
	record := make([]byte, 8192)
	for {
		n, err := unix.Read(l.fd, record)
		switch {
		case err == unix.EPIPE:
			continue // records were overwritten meanwhile
		case err != nil:
			return lines
		}
		_, text, _ := strings.Cut(string(record[:n]), ";")
		if strings.HasPrefix(text, "uprobe: "+name+":") && strings.Contains(text, "leaking uprobe") {
			lines = append(lines, strings.TrimSpace(text))
		}
	}
}

// lasting copies a program to a file that stays after the tests. For a leaked uprobe the kernel keeps the
// instruction, by the inode of the file, until the machine restarts. If the file were deleted and another
// file got the inode, the kernel would execute the wrong instruction in that file.
func lasting(t *testing.T, program string) string {
	t.Helper()
	code, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "mirador", "programs-of-tests")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, fmt.Sprintf("many-%x", sha256.Sum256(code)))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	part, err := os.CreateTemp(folder, "part-")
	if err != nil {
		t.Fatal(err)
	}
	_, err = part.Write(code)
	if err := errors.Join(err, part.Chmod(0o755), part.Close(), os.Rename(part.Name(), path)); err != nil {
		t.Fatal(err)
	}
	return path
}

// int3 is the byte that a uprobe writes over the first byte of an instruction.
const int3 = 0xcc
