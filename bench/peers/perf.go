//go:build linux && amd64

package peers

import (
	"bufio"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mirador/bench/subject"
)

// perf counts by an event at a uprobe. To time, it records events at entry and return,
// and the mean is calculated afterwards.
func (p *Peers) perf(task subject.Task) (*subject.Standing, error) {
	path, err := find("perf")
	if err != nil {
		return nil, err
	}
	t, err := p.Program.StartCopy()
	if err != nil {
		return nil, err
	}
	events := &perfEvents{path: path, group: fmt.Sprintf("mirador_bench_%d", t.PID())}
	data := filepath.Join(p.Dir, fmt.Sprintf("perf-%d", t.PID()))
	command := []string{"stat", "--event", events.name("entry")}
	err = events.add(t.Path, "entry="+task.Function)
	if err == nil && task.Timed {
		err = events.add(t.Path, "exit="+task.Function+"%return")
		command = []string{"record", "--quiet", "--overwrite", "--mmap-pages", "1M", "--output", data, "--event", events.name("entry"), "--event", events.name(exitEvent)}
	}
	var b *tool
	if err == nil {
		b, err = launch(exec.Command(path, append(command, "--pid", fmt.Sprint(t.PID()))...))
	}
	if err == nil {
		err = settle(t, b, task)
	}
	if err != nil {
		return nil, errors.Join(err, events.remove(), t.End())
	}
	s := interrupted(t, b, task, func([]string) (float64, error) { return events.mean(data) })
	stop := s.Stop
	s.Stop = func() error { return errors.Join(stop(), events.remove()) }
	return s, nil
}

// settle waits until the tool's uprobe is set. perf does not report this, but calls
// become slower.
func settle(t *subject.Target, b *tool, task subject.Task) error {
	for begin := time.Now(); time.Since(begin) < subject.Patience; time.Sleep(50 * time.Millisecond) {
		cost, err := t.Ask(2, "cost %s lb 10 20", task.Function) // the least of 20 batches is reliable
		if err != nil {
			return err
		}
		const plain = 100 // nanoseconds that only a uprobe can add
		if cost[0]-cost[1] > plain {
			return nil
		}
		select {
		case line, open := <-b.lines:
			if !open {
				return &subject.Missing{Why: b.name() + " does not run here"}
			}
			if strings.Contains(strings.ToLower(line), "error") {
				b.kill()
				return &subject.Missing{Why: b.name() + " does not run here: " + line}
			}
		default:
		}
	}
	b.kill()
	return &subject.Missing{Why: b.name() + " set no uprobe"}
}

// perfEvents is a group of uprobe events of its own.
type perfEvents struct {
	path, group string
	added       bool
}

// exitEvent is the name that perf gives an event at a return.
const exitEvent = "exit__return"

func (e *perfEvents) name(event string) string { return e.group + ":" + event }

func (e *perfEvents) add(program, definition string) error {
	_, err := output(exec.Command(e.path, "probe", "--quiet", "--exec", program, "--add", e.group+":"+definition))
	e.added = e.added || err == nil
	return err
}

func (e *perfEvents) remove() error {
	if !e.added {
		return nil
	}
	_, err := output(exec.Command(e.path, "probe", "--quiet", "--del", e.group+":*"))
	return err
}

// mean returns the mean of the times between entries and the returns that follow them.
func (e *perfEvents) mean(data string) (float64, error) {
	out, err := output(exec.Command(e.path, "script", "--input", data, "--ns", "--fields", "time,event"))
	if err != nil {
		return 0, err
	}
	return meanOfRecords(e.group, out)
}

func meanOfRecords(group, out string) (float64, error) {
	var sum, n, entry float64
	for in := bufio.NewScanner(strings.NewReader(out)); in.Scan(); {
		words := strings.Fields(in.Text())
		if len(words) < 2 {
			continue
		}
		// Seconds with nine digits would exceed the precision of a float64; without the
		// point they are integer nanoseconds.
		ns, err := strconv.ParseInt(strings.ReplaceAll(strings.TrimSuffix(words[0], ":"), ".", ""), 10, 64)
		switch {
		case err != nil:
		case strings.HasPrefix(words[1], group+":entry"):
			entry = float64(ns)
		case strings.HasPrefix(words[1], group+":"+exitEvent) && entry != 0:
			sum, n, entry = sum+float64(ns)-entry, n+1, 0
		}
	}
	if n == 0 {
		return 0, errors.New("perf recorded no call")
	}
	return sum / n, nil
}
