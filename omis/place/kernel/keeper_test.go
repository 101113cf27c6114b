//go:build linux && amd64

package kernel_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/monitor/rig"
	"mirador/omis/node"
	"mirador/omis/place/kernel"
	"mirador/omis/place/kernel/persist"
	"mirador/omis/program"
	"mirador/probes/journal"
)

// keeperEnv makes the test binary a monitor whose measurements outlive it. Its value is an assignment.
const keeperEnv = "MIRADOR_TEST_KEEPER"

// assignment is a region of a process to be counted and timed.
type assignment struct {
	Data  string
	Proc  omis.ProcID
	Entry uint64
	Exits []uint64
	Calls bool // the system call of a nap instead of the function
	Clock program.Clock
	OneIn int64 // one in so many intervals is timed; 0: all
	// Spread asks for histograms.
	Spread bool
	// Sum asks for the sum of a value that an event has, and nothing else.
	Sum *loadedSum
	// Deadly kills the monitor when it deletes pages of rows that it has added up.
	Deadly bool
}

// loadedSum is a value that an event has.
type loadedSum struct {
	Watch node.Watch
	Load  program.Load
}

func (a *assignment) kind() program.StoreKind {
	if a.Spread {
		return program.StoreHistograms
	}
	return program.StoreIntervals
}

// keeper is a monitor in a process of its own, whose measurements outlive it.
type keeper struct {
	t    *testing.T
	data string // its data directory
	cmd  *exec.Cmd
	in   *bufio.Writer
	out  *bufio.Reader
}

// newKeeper starts a monitor.
func newKeeper(t *testing.T, a assignment) *keeper {
	t.Helper()
	return startKeeper(t, "/proc/self/exe", a)
}

// startKeeper starts a copy of the test binary as a monitor.
func startKeeper(t *testing.T, program string, a assignment) *keeper {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{t: t, data: a.Data, cmd: exec.Command(program)}
	k.cmd.Env = append(os.Environ(), keeperEnv+"="+string(text))
	k.cmd.Stderr = os.Stderr
	in, err := k.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	k.in, k.out = bufio.NewWriter(in), bufio.NewReader(out)
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.kill)
	return k
}

// placedKeeper starts a monitor and has it place its program.
func placedKeeper(t *testing.T, a assignment) *keeper {
	t.Helper()
	k := newKeeper(t, a)
	k.want("keep", "kept")
	k.want("place", "placed")
	return k
}

// successor starts a monitor after the end of another one, whose stores it finds.
func successor(t *testing.T, a assignment) *keeper {
	t.Helper()
	k := newKeeper(t, a)
	k.want("recall", "true true")
	return k
}

// adopt makes the monitor place its program, which adopts everything that the previous monitor placed.
func (k *keeper) adopt() {
	k.t.Helper()
	k.want("place", "placed")
	k.want("settle", "0 orphans")
}

// close makes the monitor close its stores, after which the kernel keeps nothing of it.
func (k *keeper) close() {
	k.t.Helper()
	k.want("close", "closed")
	if f, err := persist.Of(k.data); err != nil || len(f.Names()) > 0 {
		k.t.Errorf("%q are left, %v", f.Names(), err)
	}
}

func (k *keeper) kill() {
	k.cmd.Process.Kill() // it may have ended
	k.cmd.Wait()
}

// do sends a command, and returns the answer.
func (k *keeper) do(what string) string {
	k.t.Helper()
	k.begin(what)
	return k.next(what)
}

// begin sends a command without waiting for an answer.
func (k *keeper) begin(what string) {
	fmt.Fprintln(k.in, what)
	k.in.Flush()
}

// next returns the answer to a command.
func (k *keeper) next(what string) string {
	k.t.Helper()
	line, err := k.out.ReadString('\n')
	if err != nil {
		k.t.Fatalf("%s: %v", what, err)
	}
	return strings.TrimSpace(line)
}

func (k *keeper) want(what, answer string) {
	k.t.Helper()
	if got := k.do(what); got != answer {
		k.t.Errorf("%s: %q, want %q", what, got, answer)
	}
}

// startScenes starts a target, and assigns its function work.
func startScenes(t *testing.T, flags ...string) (*rig.Target, assignment) {
	t.Helper()
	g := rig.Start(t, rig.Scenes(t, flags...))
	return g, assign(t, g)
}

// checkCode checks that the function work is as it was before.
func checkCode(t *testing.T, g *rig.Target, before []byte) {
	t.Helper()
	if now := codeOfWork(g); !bytes.Equal(before, now) {
		t.Errorf("the code is % x, not % x", now, before)
	}
}

// codeOfWork returns the code of the function work.
func codeOfWork(g *rig.Target) []byte { return g.Code(g.Func["work"], g.Size["work"]) }

// assign makes an assignment with a new data directory, and removes what is left of it in the kernel after
// the test.
func assign(t *testing.T, g *rig.Target) assignment {
	t.Helper()
	data := t.TempDir()
	t.Cleanup(func() {
		f, err := persist.Of(data)
		if err == nil {
			err = f.Clear(link.Link.Close)
		}
		if err != nil {
			t.Error(err)
		}
	})
	a := assignment{Data: data, Proc: g.ID, Entry: g.Func["work"]}
	if a.Entry != 0 {
		a.Exits = g.Exits("work")
	}
	return a
}

// keep is the main function of the monitor.
func keep(text string) {
	var a assignment
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		panic(err)
	}
	j, err := journal.Open(a.Data)
	if err != nil {
		panic(err)
	}
	var entries persist.Journal = j
	if a.Deadly {
		entries = deadlyJournal{j}
	}
	m := &commanded{assignment: a, placer: kernel.NewKeeper(registrarCommand(), a.Data, entries)}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer, err := m.execute(lines.Text())
		if err != nil {
			answer = "error: " + err.Error()
		}
		fmt.Println(answer)
	}
}

// commanded is a monitor that executes commands.
type commanded struct {
	assignment
	placer          *kernel.Placer
	sums, intervals program.Store
	placed          []program.Placed
}

func (m *commanded) execute(what string) (answer string, err error) {
	switch what {
	case "recall":
		m.sums, err = m.placer.Recall(m.Proc, program.StoreSums, "count")
		if err == nil {
			m.intervals, err = m.placer.Recall(m.Proc, m.kind(), "time")
		}
		return fmt.Sprint(m.sums != nil, m.intervals != nil), err
	case "keep":
		m.sums, err = m.placer.Keep(m.Proc, program.StoreSums, "count")
		if err == nil {
			m.intervals, err = m.placer.Keep(m.Proc, m.kind(), "time")
		}
		return "kept", err
	case "place":
		return "placed", m.place()
	case "settle":
		orphans, err := m.placer.Settle()
		return fmt.Sprintf("%d orphans", len(orphans)), err
	case "rows":
		return m.rows()
	case "threads":
		swept := m.placer.Sweep()
		list, err := m.sums.Rows()
		if n := len(list); n > program.RowsOfEnded(2)*5/4+1<<9 {
			return fmt.Sprintf("%d have rows", n), err
		}
		return "few have rows", errors.Join(swept, err)
	case "stands":
		return fmt.Sprint(m.placed[0].Stands()), nil
	case "reset":
		return "reset", errors.Join(m.sums.Reset(), m.intervals.Reset())
	case "registrar":
		return fmt.Sprint(m.placer.Registrar()), nil
	case "churn":
		for err == nil {
			err = errors.Join(m.place(), m.placer.Remove(m.placed))
		}
		return "", err
	case "remove":
		return "removed", m.placer.Remove(m.placed)
	case "close":
		err := m.placer.Remove(m.placed)
		return "closed", errors.Join(err, m.sums.Close(), m.intervals.Close(), m.placer.Close())
	}
	return "", errors.New("what?")
}

func (m *commanded) place() error {
	count := program.Program{{Do: program.OpAdd, Value: 1, Store: m.sums}, {Do: program.OpStart, Clock: m.Clock, OneIn: m.OneIn, Store: m.intervals}}
	end := program.Program{{Do: program.OpStop, Clock: m.Clock, OneIn: m.OneIn, Store: m.intervals}}
	if m.Clock == program.ClockCell { // the calls that begin in an interval, with its own
		slices.Reverse(count)
		count[0].Source, end[0].Source = m.sums, m.sums
	}
	if m.Sum != nil {
		m.Sum.Watch.Proc = m.Proc
		return m.placeAll([]program.Placing{{Watch: m.Sum.Watch, Program: program.Program{{Do: program.OpAdd, Load: m.Sum.Load, Store: m.sums}}}})
	}
	if m.Calls {
		call := func(kind node.EventKind) node.Watch {
			return node.Watch{Event: kind, Proc: m.Proc, Name: "clock_nanosleep"}
		}
		return m.placeAll([]program.Placing{{Watch: call(node.EventSysCallStarted), Program: count}, {Watch: call(node.EventSysCallEnded), Program: end}})
	}
	watch := func(addr uint64) node.Watch {
		return node.Watch{Event: node.EventReachedAddr, Proc: m.Proc, Addr: addr}
	}
	list := []program.Placing{{Watch: watch(m.Entry), Program: count}}
	for _, exit := range m.Exits {
		list = append(list, program.Placing{Watch: watch(exit), Program: end})
	}
	return m.placeAll(list)
}

func (m *commanded) placeAll(list []program.Placing) error {
	placed, errs := m.placer.Place(list)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	m.placed = placed
	for _, p := range placed {
		p.SetActive(true)
	}
	return nil
}

// rows returns the calls, the intervals and the unfinished intervals of all rows, followed by the intervals
// in buckets or the skipped intervals if the assignment asks for histograms or samples.
func (m *commanded) rows() (string, error) {
	var calls, intervals, unfinished int64
	sums, err := m.sums.Rows()
	for _, r := range sums {
		calls += r.Value
	}
	times, timesErr := m.intervals.Rows()
	var skipped int64
	for _, r := range times {
		intervals, unfinished, skipped = intervals+r.Count, unfinished+r.Unfinished, skipped+r.Skipped
		if n := uint64(r.Count); r.Sum.Lo < n*r.Min || r.Sum.Lo > n*r.Max {
			return fmt.Sprintf("%+v", r), nil
		}
		if m.Clock == program.ClockCell && r.Sum.Lo != uint64(r.Count) {
			return fmt.Sprintf("%+v: an interval has more than one call", r), nil
		}
	}
	if m.Spread {
		in, bucketsErr := inBuckets(m.intervals)
		return fmt.Sprint(calls, intervals, unfinished, in), errors.Join(err, timesErr, bucketsErr)
	}
	if m.OneIn > 0 {
		return fmt.Sprint(calls, intervals, unfinished, skipped), errors.Join(err, timesErr)
	}
	return fmt.Sprint(calls, intervals, unfinished), errors.Join(err, timesErr)
}

// inBuckets returns the number of intervals in the buckets of all rows of a store.
func inBuckets(s program.Store) (n uint64, err error) {
	list, err := s.(program.HistogramStore).Histograms()
	for _, r := range list {
		n += r.Buckets.Count()
		if r.Buckets.Count() != uint64(r.Count) {
			err = errors.Join(err, fmt.Errorf("row %+v", r))
		}
	}
	return n, err
}

// ended returns a function that reports whether a keeper has ended by itself.
func (k *keeper) ended() func() bool {
	over := make(chan struct{})
	deadline := time.Now().Add(time.Minute)
	go func() {
		k.cmd.Wait() // however it ends
		close(over)
	}()
	return func() bool {
		select {
		case <-over:
			return true
		default:
		}
		if time.Now().After(deadline) {
			k.t.Fatal("the monitor does not end")
		}
		return false
	}
}

// deadlyJournal is a journal that kills its monitor when pages are deleted.
type deadlyJournal struct{ *journal.Journal }

func (j deadlyJournal) Delete(key string) error {
	if strings.HasPrefix(key, "kernel/page/") {
		if err := unix.Kill(os.Getpid(), unix.SIGKILL); err != nil {
			panic(err)
		}
		select {}
	}
	return j.Journal.Delete(key)
}
