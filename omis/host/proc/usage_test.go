//go:build linux

package proc

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mirador/examples/targets"
	"mirador/omis"
	"mirador/omis/node"
)

// usage is a process of testdata/usage.c, with its own report of its resource use.
type usage struct {
	id      omis.ProcID
	args    []string
	self    map[string]float64
	threads map[int][]float64 // by thread: CPU time, system time, nice
}

// nobody and nogroup differ from the ids of the tests.
const nobody, nogroup = 65534, 65533

func startUsage(t *testing.T) *usage {
	t.Helper()
	dir := targets.SharedDir(t)
	program := filepath.Join(dir, "usage")
	if msg, err := exec.Command("gcc", "-O2", "-pthread", "-o", program, "testdata/usage.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(file, nobody, nogroup); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, file, "two words", "")
	cmd.Env = []string{"A=1", "EMPTY=", "B=two words"}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nogroup}}
	u := &usage{args: cmd.Args[:3], self: make(map[string]float64), threads: make(map[int][]float64)}
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
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	u.listen(t, bufio.NewScanner(out))
	if u.id, err = Identify(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	awaitAsleep(t, u.id.PID)
	return u
}

func (u *usage) listen(t *testing.T, lines *bufio.Scanner) {
	t.Helper()
	names := []string{"utime", "stime", "maxrss", "minflt", "majflt", "inblock", "oublock", "nvcsw", "nivcsw", "nice", "ppid"}
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		var values []float64
		for _, text := range f[1:] {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, n)
		}
		switch f[0] {
		case "thread":
			u.threads[int(values[0])] = values[1:]
		case "process":
			for i, name := range names {
				u.self[name] = values[i]
			}
			return
		}
	}
	t.Fatal("the program's report is incomplete")
}

// awaitAsleep waits until all threads of a process sleep.
func awaitAsleep(t *testing.T, pid int) {
	t.Helper()
	for strings.Trim(ps(t, pid, "-L", "-o", "state="), "S\n") != "" {
		time.Sleep(time.Millisecond)
	}
}

func ps(t *testing.T, pid int, args ...string) string {
	t.Helper()
	out, err := exec.Command("ps", append([]string{"-p", fmt.Sprint(pid)}, args...)...).Output()
	if err != nil {
		t.Fatalf("ps %v: %v", args, err)
	}
	return string(out)
}

func psNumbers(t *testing.T, pid int, columns string) (numbers []int64) {
	t.Helper()
	for _, f := range strings.Fields(ps(t, pid, "-o", columns)) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %v, want %v (within %v)", what, got, want, tolerance)
	}
}

const allFields = node.LastProcField<<1 - 1

// TestInfoEqualsOwnReport compares every component that the node provides with the
// process's own system calls (getrusage, getpriority, getppid), and with ps.
func TestInfoEqualsOwnReport(t *testing.T) {
	u := startUsage(t)
	r := newReader(t, 0)
	i, err := r.Info(u.id, allFields)
	if err != nil {
		t.Fatal(err)
	}
	s := u.self
	for _, c := range []struct {
		what      string
		got       float64
		want      float64
		tolerance float64
	}{
		{"uid", float64(i.UID), nobody, 0},
		{"gid", float64(i.GID), nogroup, 0},
		{"parent", float64(i.Parent), s["ppid"], 0},
		{"priority", float64(i.Priority), s["nice"], 0},
		{"state", float64(i.State), node.StateBlocked, 0},
		{"total time", i.TotalTime.Seconds(), s["utime"] + s["stime"], 0.02},
		{"system time", i.SystemTime.Seconds(), s["stime"], 0.02},
		{"user time", i.UserTime.Seconds(), s["utime"], 0.02},
		{"most resident", float64(i.MaxResidentSize), s["maxrss"], 1 << 20},
		{"minor faults", float64(i.MinorFaults), s["minflt"], 10},
		{"major faults", float64(i.MajorFaults), s["majflt"], 2},
		{"file input", float64(i.FileInput), s["inblock"], 0},
		{"file output", float64(i.FileOutput), s["oublock"], 0},
		// The process makes these last switches after its report.
		{"voluntary switches", float64(i.VoluntarySwitches), s["nvcsw"], 15},
		{"involuntary switches", float64(i.InvoluntaryOnes), s["nivcsw"], 30},
		{"integral of the resident size", float64(i.IntResidentSize), -1, 0},
		{"swaps", float64(i.Swaps), -1, 0},
	} {
		near(t, c.what, c.got, c.want, c.tolerance)
	}
	if i.ReadBytes < 1<<20 || i.WrittenBytes < 1<<20 || i.WrittenBytes > 1<<20+1<<14 {
		t.Errorf("%d bytes read, %d written: the process read and wrote a block of a megabyte", i.ReadBytes, i.WrittenBytes)
	}
	if i.VoluntarySwitches < 80 {
		t.Errorf("%d voluntary switches: two threads slept 40 times each", i.VoluntarySwitches)
	}
	kilobytes := psNumbers(t, u.id.PID, "vsz=,rss=")
	near(t, "memory", float64(i.MemorySize), float64(kilobytes[0]<<10), 0)
	near(t, "resident memory", float64(i.ResidentSize), float64(kilobytes[1]<<10), 64<<10)
	if !slices.Equal(i.Argv, u.args) {
		t.Errorf("arguments %q, want %q", i.Argv, u.args)
	}
	if want := []string{"A=1", "EMPTY=", "B=two words"}; !slices.Equal(i.Envp, want) {
		t.Errorf("environment %q, want %q", i.Envp, want)
	}
}

// TestInfoBitByBit checks that a component is the same whatever else is asked for, and so
// whichever file it comes from.
func TestInfoBitByBit(t *testing.T) {
	u := startUsage(t)
	r := newReader(t, 0)
	whole, err := r.Info(u.id, allFields)
	if err != nil {
		t.Fatal(err)
	}
	for bit := node.ProcGlobalID; bit <= node.LastProcField; bit <<= 1 {
		i, err := r.Info(u.id, bit)
		if err != nil {
			t.Errorf("%#x: %v", bit, err)
		}
		if got, want := component(&i, bit), component(&whole, bit); got != want {
			t.Errorf("%#x: %s, with all others %s", bit, got, want)
		}
	}
}

func component(i *node.ProcInfo, bit node.ProcFields) string {
	switch bit {
	case node.ProcArgv, node.ProcUserArgv:
		return fmt.Sprint(i.Argv)
	case node.ProcEnvp:
		return fmt.Sprint(i.Envp)
	case node.ProcTotalTime:
		return fmt.Sprintf("%.2f", i.TotalTime.Seconds())
	case node.ProcSystemTime:
		return fmt.Sprintf("%.2f", i.SystemTime.Seconds())
	case node.ProcUserTime:
		return fmt.Sprintf("%.2f", i.UserTime.Seconds())
	case node.ProcQueuedTime:
		return fmt.Sprintf("%.3f", i.QueuedTime.Seconds())
	}
	return fmt.Sprint(map[node.ProcFields]int64{
		node.ProcUID: i.UID, node.ProcGID: i.GID, node.ProcParent: int64(i.Parent), node.ProcSchedulingState: int64(i.State),
		node.ProcPriority: i.Priority, node.ProcMemorySize: i.MemorySize, node.ProcResidentSize: i.ResidentSize,
		node.ProcMaxResidentSize: i.MaxResidentSize, node.ProcIntResidentSize: i.IntResidentSize,
		node.ProcMinorPageFaults: i.MinorFaults, node.ProcMajorPageFaults: i.MajorFaults, node.ProcSwaps: i.Swaps,
		node.ProcFileInput: i.FileInput, node.ProcFileOutput: i.FileOutput,
		node.ProcVolContSwitch: i.VoluntarySwitches, node.ProcInvolContSwitch: i.InvoluntaryOnes,
		node.ProcReadBytes: i.ReadBytes, node.ProcWrittenBytes: i.WrittenBytes, node.ProcHeap: i.Heap, node.ProcNonHeap: i.NonHeap,
	}[bit])
}

// TestThreadInfoEqualsOwnReport does the same for threads, whichever way they are read.
// Root functions, stacks and creators require stopping threads; omis/linux tests them.
func TestThreadInfoEqualsOwnReport(t *testing.T) {
	u := startUsage(t)
	r := newCrowd(t)
	tids, err := r.Threads(u.id)
	if err != nil || len(tids) != 3 || len(u.threads) != 3 {
		t.Fatal(tids, err, u.threads)
	}
	names := strings.Split(strings.TrimSpace(ps(t, u.id.PID, "-L", "-o", "comm=")), "\n")
	atOnce := r.ThreadInfos(u.id, append(make([]int, fewest), tids...), everything)
	for n, tid := range tids {
		i, err := r.ThreadInfo(u.id, tid, node.LastThreadField<<1-1)
		if err != nil {
			t.Fatal(err)
		}
		u.check(t, tid, n, names[n], i)
		u.checkUsage(t, tid, &i.Usage)
		if i, there := atOnce[tid]; there {
			u.check(t, tid, n, names[n], i)
		} else {
			t.Errorf("thread %d is missing among those read at once", tid)
		}
	}
}

// checkUsage compares what was read about a thread's usage with its own report.
func (u *usage) checkUsage(t *testing.T, tid int, i *node.Usage) {
	t.Helper()
	self := u.threads[tid][3:]
	near(t, "user time", i.UserTime.Seconds(), self[0], 0.02)
	near(t, "minor faults", float64(i.MinorFaults), self[1], 10)
	near(t, "major faults", float64(i.MajorFaults), self[2], 2)
	near(t, "file input", float64(i.FileInput), self[3], 0)
	near(t, "file output", float64(i.FileOutput), self[4], 0)
	near(t, "voluntary switches", float64(i.VoluntarySwitches), self[5], 5)
	near(t, "involuntary switches", float64(i.InvoluntaryOnes), self[6], 10)
	if main := tid == u.id.PID; main != (i.WrittenBytes > 1<<20) {
		t.Errorf("thread %d has written %d bytes; the main thread wrote a megabyte", tid, i.WrittenBytes)
	}
}

// check compares what was read about the n-th thread with the process's report.
func (u *usage) check(t *testing.T, tid, n int, name string, i node.ThreadInfo) {
	t.Helper()
	self, ok := u.threads[tid]
	if !ok {
		t.Fatalf("no thread %d", tid)
	}
	near(t, "total time", i.TotalTime.Seconds(), self[0], 0.01)
	near(t, "system time", i.SystemTime.Seconds(), self[1], 0.02)
	near(t, "priority", float64(i.Priority), self[2], 0)
	near(t, "priority", float64(i.Priority), []float64{3, 5, 7}[n], 0)
	near(t, "state", float64(i.State), node.StateBlocked, 0)
	if i.Name != name {
		t.Errorf("name %q, ps says %q", i.Name, name)
	}
}
