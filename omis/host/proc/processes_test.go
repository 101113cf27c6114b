//go:build linux

package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/examples/targets"
	"mirador/omis"
	"mirador/omis/node"
)

// allCrowd has all components accepted when processes are read at once.
const allCrowd = crowdStat | crowdKnown | crowdSizes

// former starts testdata/former.c and waits until its work is done, most of it by a
// thread that has ended.
func former(t *testing.T) omis.ProcID {
	t.Helper()
	program := filepath.Join(targets.SharedDir(t), "former")
	if msg, err := exec.Command("gcc", "-O2", "-pthread", "-o", program, "testdata/former.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	cmd := exec.Command(program)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(cmd) })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "worked\n" {
		t.Fatalf("%q, %v", line, err)
	}
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestProcessesAtOnceEqualFiles checks that sleeping processes look the same whichever
// way they are read. It reads them at once first, since the kernel remembers what it
// showed in files.
func TestProcessesAtOnceEqualFiles(t *testing.T) {
	r, files := newCrowd(t), NewReader(0)
	defer files.Close()
	worker := former(t)
	ids := append(sleepers(t, 5), worker)
	for i, id := range ids {
		if err := unix.Setpriority(unix.PRIO_PROCESS, id.PID, 3*i); err != nil {
			t.Fatal(err)
		}
		awaitAsleep(t, id.PID)
	}
	for _, f := range []node.ProcFields{allCrowd, node.ProcTotalTime | node.ProcSystemTime} {
		infos := r.procInfosAtOnce(ids, f)
		for i, id := range ids {
			want, err := files.Info(id, f)
			got := infos[i]
			if got == nil || err != nil {
				t.Fatalf("process %d: %v, %v", id.PID, got, err)
			}
			if a, b := shown(got, f), shown(&want, f); a != b {
				t.Errorf("process %d: %s, by files %s", id.PID, a, b)
			}
		}
	}
	if i := r.procInfosAtOnce([]omis.ProcID{worker}, allCrowd)[0]; i.TotalTime < 200*time.Millisecond || i.SystemTime == 0 {
		t.Errorf("a process whose threads worked for 0.1 s each has %v, %v of them in the kernel", i.TotalTime, i.SystemTime)
	}
}

// shown formats the components in f.
func shown(i *node.ProcInfo, f node.ProcFields) (s string) {
	for bit := node.ProcGlobalID; bit <= node.LastProcField; bit <<= 1 {
		if f&bit&^(node.ProcGlobalID|node.ProcLocalID|node.ProcMessageQueue|node.ProcNode) != 0 {
			s += fmt.Sprintf("%#x %s, ", uint32(bit), component(i, bit))
		}
	}
	return s
}

// TestTimesOfProcessesNeverFall checks that the times of a busy process never decrease,
// in whatever order the two ways of reading are used.
func TestTimesOfProcessesNeverFall(t *testing.T) {
	r := newCrowd(t)
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer end(cmd)
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	var last node.ProcInfo
	for begin := time.Now(); last.TotalTime < 200*time.Millisecond; {
		if time.Since(begin) > time.Minute {
			t.Fatalf("the process has worked for %v", last.TotalTime)
		}
		info, err := r.Info(id, crowdStat)
		if err != nil {
			t.Fatal(err)
		}
		at := r.procInfosAtOnce([]omis.ProcID{id}, crowdStat)[0]
		if at == nil {
			t.Fatal("the process was not read")
		}
		for _, now := range []node.ProcInfo{info, *at} {
			if now.TotalTime < last.TotalTime || now.SystemTime < last.SystemTime {
				t.Fatalf("%+v after %+v", now, last)
			}
			last = now
		}
	}
	q, err := r.ask(id)
	if err != nil {
		t.Fatal(err)
	}
	defer q.done()
	if before := q.notLess(1000); before != 10*time.Second || q.notLess(999) != before || q.notLess(1001) != before+10*time.Millisecond {
		t.Error("a system time fell")
	}
}

// TestProcessesLeftToFiles checks that ProcInfos leaves out what Info must read.
func TestProcessesLeftToFiles(t *testing.T) {
	r := newCrowd(t)
	dying, cmd := sleeper(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		if s, err := readStat(dying.PID); err != nil || time.Now().After(deadline) {
			t.Fatalf("no zombie: %+v, %v", s, err)
		} else if s.state == 'Z' {
			break
		}
	}
	alive, _ := sleeper(t)
	later := omis.ProcID{PID: alive.PID, Start: alive.Start + 1}
	infos := r.procInfosAtOnce([]omis.ProcID{self(t), dying, later, alive}, crowdStat)
	for i, what := range []string{"one with several threads", "one that has ended", "one that had the number before"} {
		if infos[i] != nil {
			t.Errorf("%s was read: %+v", what, infos[i])
		}
	}
	if infos[3] == nil || infos[3].Swaps != -1 {
		t.Errorf("the process that is alive: %+v", infos[3])
	}
	end(cmd)
	if infos := r.procInfosAtOnce([]omis.ProcID{dying}, crowdStat); infos[0] != nil {
		t.Errorf("a process that does not exist was read: %+v", infos[0])
	}
	many := make([]omis.ProcID, 1<<16)
	for _, f := range []node.ProcFields{0, crowdSizes, crowdStat | node.ProcUID, crowdStat | node.ProcParent} {
		if r.ProcInfos(many, f) != nil {
			t.Errorf("fields %#x were read at once", uint32(f))
		}
	}
	if infos := r.ProcInfos(many, crowdStat); len(infos) != len(many) {
		t.Errorf("%d of many", len(infos))
	}
	r.crowd.close()
	if infos := r.ProcInfos(many, crowdStat); infos != nil {
		t.Errorf("a closed reader returns %d processes", len(infos))
	}
}

func TestWhenItPaysToReadAllProcesses(t *testing.T) {
	for _, c := range []struct {
		asked, threads int
		want           bool
	}{
		{fewest - 1, fewest, false}, {fewest, passed * fewest, true}, {fewest, passed*fewest + 1, false}, {100, 1000, true},
	} {
		if got := pays(c.asked, c.threads); got != c.want {
			t.Errorf("%d processes with %d threads: %t", c.asked, c.threads, got)
		}
	}
	if n := allThreads(); n < len(mustList(t)) {
		t.Errorf("%d threads on the machine, fewer than in this process alone", n)
	}
}

func mustList(t *testing.T) []int {
	t.Helper()
	tids, err := Threads(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return tids
}
