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
	t   *testing.T
	cmd *exec.Cmd
	in  *bufio.Writer
	out *bufio.Reader
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
	k := &keeper{t: t, cmd: exec.Command(program)}
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
	var book persist.Journal = j
	if a.Deadly {
		book = deadlyBook{j}
	}
	m := &obeying{assignment: a, placer: kernel.NewKeeper(registrarCommand(), a.Data, book)}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer, err := m.obey(lines.Text())
		if err != nil {
			answer = "error: " + err.Error()
		}
		fmt.Println(answer)
	}
}

// obeying is the state of the monitor, which executes commands line by line.
type obeying struct {
	assignment
	placer          *kernel.Placer
	sums, intervals program.Store
	placed          []program.Placed
}

func (m *obeying) obey(what string) (answer string, err error) {
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

func (m *obeying) place() error {
	count := program.Program{{Do: program.OpAdd, Value: 1, Store: m.sums}, {Do: program.OpStart, Clock: m.Clock, OneIn: m.OneIn, Store: m.intervals}}
	end := program.Program{{Do: program.OpStop, Clock: m.Clock, OneIn: m.OneIn, Store: m.intervals}}
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

func (m *obeying) placeAll(list []program.Placing) error {
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

// rows returns the sums over all rows.
func (m *obeying) rows() (string, error) {
	var calls, intervals, unfinished int64
	sums, err := m.sums.Rows()
	for _, r := range sums {
		calls += r.Value
	}
	times, again := m.intervals.Rows()
	var skipped int64
	for _, r := range times {
		intervals, unfinished, skipped = intervals+r.Count, unfinished+r.Unfinished, skipped+r.Skipped
		if n := uint64(r.Count); r.Sum.Lo < n*r.Min || r.Sum.Lo > n*r.Max {
			return fmt.Sprintf("%+v", r), nil
		}
	}
	if m.Spread {
		in, third := inBuckets(m.intervals)
		return fmt.Sprint(calls, intervals, unfinished, in), errors.Join(err, again, third)
	}
	if m.OneIn > 0 {
		return fmt.Sprint(calls, intervals, unfinished, skipped), errors.Join(err, again)
	}
	return fmt.Sprint(calls, intervals, unfinished), errors.Join(err, again)
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

// What a killed monitor has left continues to count, and the next monitor adopts it.
func TestAnotherMonitorTakesOver(t *testing.T) {
	for name, clock := range map[string]program.Clock{"what passes": program.ClockOrdered, "CPU time": program.ClockCPU} {
		t.Run(name, func(t *testing.T) { takeOver(t, clock) })
	}
}

func takeOver(t *testing.T, clock program.Clock) {
	g := rig.Start(t, rig.Scenes(t))
	a := assign(t, g)
	a.Clock = clock
	before := g.Code(g.Func["work"], g.Size["work"])
	k := newKeeper(t, a)
	k.want("recall", "false false")
	k.want("settle", "0 orphans")
	k.want("keep", "kept")
	k.want("place", "placed")
	g.Do("together 3 100")
	k.want("rows", "300 300 0")
	for i := range 3 {
		k.kill()
		g.Do("call 50")
		k = newKeeper(t, a)
		k.want("recall", "true true")
		k.want("rows", fmt.Sprint(350+i*60, 350+i*60, 0))
		k.want("place", "placed")
		k.want("settle", "0 orphans")
		g.Do("call 10")
		k.want("rows", fmt.Sprint(360+i*60, 360+i*60, 0))
	}
	k.want("reset", "reset")
	g.Do("call 5")
	k.kill()
	g.Do("call 5")
	k = placedKeeper(t, a)
	k.want("rows", "10 10 0")
	k.want("close", "closed")
	if !bytes.Equal(before, g.Code(g.Func["work"], g.Size["work"])) {
		t.Error("the code is not what it was")
	}
	if f, err := persist.Of(a.Data); err != nil || len(f.Names()) > 0 {
		t.Errorf("%q are left, %v", f.Names(), err)
	}
}

// Monitors that are killed one soon after the other do not take more memory each.
func TestQuickSuccessors(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	a := assign(t, g)
	k := newKeeper(t, a)
	k.want("settle", "0 orphans")
	k.want("keep", "kept")
	k.want("place", "placed")
	chunks := func() (n int) {
		f, err := persist.Of(a.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range f.Names() {
			if strings.HasPrefix(name, "chunk-") {
				n++
			}
		}
		return n
	}
	before := chunks()
	for i := range 6 {
		g.Do("onebyone 100 1")
		k.kill()
		k = newKeeper(t, a)
		k.want("recall", "true true")
		k.want("rows", fmt.Sprint((i+1)*100, (i+1)*100, 0))
		k.want("place", "placed")
		k.want("settle", "0 orphans")
	}
	if now := chunks(); before == 0 || now > before {
		t.Errorf("%d pieces of memory, and then %d", before, now)
	}
	k.want("close", "closed")
}

// If only some intervals are timed, the next monitor has all counts as well. A program with another ratio
// is not adopted.
func TestSampledIsTakenOver(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	a := assign(t, g)
	a.OneIn = 10
	k := placedKeeper(t, a)
	g.Do("together 3 100")
	k.want("rows", "300 30 0 270")
	for i := range 3 {
		g.Do("call 5")
		k.kill()
		g.Do("call 10")
		g.Do("onebyone 20 20")
		k = newKeeper(t, a)
		k.want("recall", "true true")
		k.want("place", "placed")
		k.want("settle", "0 orphans")
		g.Do("call 5")
		turns := 30 + (i+1)*(2+2*20)
		k.want("rows", fmt.Sprint(10*turns, turns, 0, 9*turns))
	}
	k.kill()
	a.OneIn = 20
	k = placedKeeper(t, a)
	k.want("settle", "1 orphans") // the end of an interval is the same for both ratios
	k.want("close", "closed")
}

// The next monitor has every interval in its bucket, also those of threads whose rows were freed. A timer
// with the same key but without a histogram is another store.
func TestHistogramIsTakenOver(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	a := assign(t, g)
	a.Spread = true
	k := placedKeeper(t, a)
	n := 0
	for range 3 {
		g.Do("onebyone 400 2") // more than half of the rows that are ready
		g.Do("call 5")
		k.want("rows", fmt.Sprint(n+805, n+805, 0, n+805))
		k.kill()
		g.Do("onebyone 20 20")
		n += 805 + 400
		k = newKeeper(t, a)
		k.want("recall", "true true")
		k.want("rows", fmt.Sprint(n, n, 0, n))
		k.want("place", "placed")
		k.want("settle", "0 orphans")
	}
	k.want("reset", "reset")
	g.Do("call 7")
	k.want("rows", "7 7 0 7")
	k.kill()
	a.Spread = false
	k = placedKeeper(t, a)
	k.want("settle", fmt.Sprintf("%d orphans", 2+len(a.Exits)))
	g.Do("call 3")
	k.want("rows", "10 3 0")
	k.want("close", "closed")
}

// A program that reads another clock is not adopted.
func TestKeptProgramOfAnotherClock(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	a := assign(t, g)
	a.Clock = program.ClockCPU
	k := placedKeeper(t, a)
	g.Do("call 3")
	k.kill()
	a.Clock = program.ClockOrdered
	k = placedKeeper(t, a)
	k.want("settle", fmt.Sprintf("%d orphans", 1+len(a.Exits)))
	g.Do("call 4")
	k.want("rows", "7 7 0")
	k.want("close", "closed")
}

// A program behind a landing pad is found by the requested address.
func TestKeptBehindPad(t *testing.T) {
	g := rig.Start(t, buildPads(t))
	a := assign(t, g)
	a.Entry, a.Exits = g.Func["pad_push"], g.Exits("pad_push")
	before := g.Code(a.Entry, 16)
	k := placedKeeper(t, a)
	g.Do("all 0 1")
	k.kill()
	g.Do("all 0 1")
	k = newKeeper(t, a)
	k.want("recall", "true true")
	k.want("place", "placed")
	k.want("settle", "0 orphans")
	g.Do("all 0 1")
	k.want("rows", "3 3 0")
	k.want("close", "closed")
	if after := g.Code(a.Entry, 16); !bytes.Equal(before, after) {
		t.Errorf("the code is % x, not % x", after, before)
	}
}

// What no request adopts is removed.
func TestNobodyTakesOver(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	a := assign(t, g)
	before, other := g.Code(g.Func["work"], g.Size["work"]), assign(t, g)
	k := placedKeeper(t, a)
	k.kill()
	if bytes.Equal(before, g.Code(g.Func["work"], g.Size["work"])) {
		t.Error("no uprobe has outlived the monitor")
	}
	newKeeper(t, other).want("settle", "0 orphans") // leftovers of another data directory are not touched
	k = newKeeper(t, a)
	k.want("settle", fmt.Sprintf("%d orphans", 3+len(a.Exits)))
	k.want("recall", "false false")
	if !bytes.Equal(before, g.Code(g.Func["work"], g.Size["work"])) {
		t.Error("the code is not what it was")
	}
	k.want("keep", "kept")
	k.want("place", "placed")
	g.Do("call 7")
	k.want("rows", "7 7 0")
}

// More threads than there are rows begin and end while monitors are killed.
func TestKeptRowsOfManyThreads(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	a := assign(t, g)
	k := placedKeeper(t, a)
	const threads, rounds = 7000, 3
	for i := range rounds {
		g.Do("onebyone %d 1", threads)
		k.want("threads", "few have rows")
		k.kill()
		g.Do("call 1")
		k = newKeeper(t, a)
		k.want("recall", "true true")
		k.want("place", "placed")
		n := threads*(i+1) + i + 1
		k.want("rows", fmt.Sprint(n, n, 0))
	}
	k.want("close", "closed")
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
			k.t.Fatal("it does not end")
		}
		return false
	}
}

// deadlyBook is a journal that kills its monitor when pages are deleted.
type deadlyBook struct{ *journal.Journal }

func (b deadlyBook) Delete(key string) error {
	if strings.HasPrefix(key, "kernel/page/") {
		if err := unix.Kill(os.Getpid(), unix.SIGKILL); err != nil {
			panic(err)
		}
		select {}
	}
	return b.Journal.Delete(key)
}

// A monitor is killed when it has added up rows of ended threads, and has not yet deleted the pages with
// the single rows. The next monitor counts each row once.
func TestKilledWhileFolding(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	a := assign(t, g)
	a.Deadly = true
	k := placedKeeper(t, a)
	threads := 0
	for ended := k.ended(); ; {
		g.Do("onebyone 300 1") // there are enough rows without sweeping
		threads += 300
		if ended() {
			break
		}
	}
	g.Do("call 1")
	a.Deadly = false
	k = newKeeper(t, a)
	k.want("recall", "true true")
	k.want("place", "placed")
	g.Do("call 1")
	k.want("rows", fmt.Sprint(threads+2, threads+2, 0))
	k.want("close", "closed")
}

// The target executes another program while there is no monitor. The uprobes of the former program must not
// count there, even if it maps the same file.
func TestExecWithoutAMonitor(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t, "-no-pie"))
	a := assign(t, g)
	k := placedKeeper(t, a)
	g.Do("call 5")
	k.kill()
	g.Tell("exec")
	g.Ready()
	g.Do("call 5")
	k = newKeeper(t, a)
	k.want("recall", "true true")
	k.want("rows", "5 5 0")
	k.want("place", "placed") // again
	k.want("stands", "true")
	k.want("settle", fmt.Sprintf("%d orphans", 1+len(a.Exits)))
	g.Do("call 5")
	k.want("rows", "10 10 0")
}

// The target ends while there is no monitor. The next monitor has what was measured.
func TestEndWithoutAMonitor(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	a := assign(t, g)
	k := placedKeeper(t, a)
	g.Do("call 5")
	k.kill()
	g.Do("call 5")
	g.HangUp()
	g.Cmd.Wait() // only its end matters
	k = newKeeper(t, a)
	k.want("recall", "true true")
	k.want("settle", fmt.Sprintf("%d orphans", 2))
	k.want("rows", "10 10 0")
}

// What a monitor of another version has left is removed, and not used.
func TestAnotherVersion(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	a := assign(t, g)
	before := g.Code(g.Func["work"], g.Size["work"])
	k := placedKeeper(t, a)
	k.kill()
	j, err := journal.Open(a.Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Put("kernel/head", map[string]string{"shape": "another"}), j.Close()); err != nil {
		t.Fatal(err)
	}
	k = newKeeper(t, a)
	k.want("recall", "false false")
	k.want("settle", "1 orphans")
	if !bytes.Equal(before, g.Code(g.Func["work"], g.Size["work"])) {
		t.Error("the code is not what it was")
	}
	k.want("keep", "kept")
	k.want("place", "placed")
	g.Do("call 7")
	k.want("rows", "7 7 0")
}

// Programs at events of the kernel are adopted, too.
func TestEventsAreTakenOver(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	a := assign(t, g)
	a.Calls = true
	k := placedKeeper(t, a)
	g.Do("nap 1")
	for i := range 4 {
		k.want("rows", fmt.Sprint(1+3*i, 1+3*i, 0))
		k.kill()
		g.Do("nap 1")
		k = newKeeper(t, a)
		k.want("recall", "true true")
		g.Do("nap 1")
		k.want("place", "placed")
		k.want("settle", "0 orphans")
		g.Do("nap 1")
	}
	k.want("rows", "13 13 0")
	k.want("reset", "reset")
	k.kill()
	g.Do("nap 1")
	k = newKeeper(t, a)
	k.want("settle", "4 orphans")
	k.want("keep", "kept")
	k.want("place", "placed")
	g.Do("nap 1")
	k.want("rows", "1 1 0")
	k.want("close", "closed")
	if f, err := persist.Of(a.Data); err != nil || len(f.Names()) > 0 {
		t.Errorf("%q are left, %v", f.Names(), err)
	}
}
