//go:build linux && amd64

package hold

import (
	"fmt"
	"os/exec"
	"time"

	"mirador/bench/report"
	"mirador/examples/child"
	"mirador/omis"

	"mirador/omis/linux"
)

// stops measures stopping and continuing fifty busy threads. When they continue they
// compete for the few processors, also with the thread that waits for the reply, so an
// outside observer measures when every thread runs.
func (b *bench) stops() error {
	const what = "continue them: until "
	reference, err := b.stopsOfC()
	if err != nil {
		return err
	}
	t, err := b.busy()
	if err != nil {
		return err
	}
	defer t.Kill()
	m, err := openRig(linux.Config{})
	if err != nil {
		return err
	}
	defer func() { b.note(m.close()) }()
	defer t.Kill() // before the monitor is closed
	p, err := m.attach(t.PID)
	if err != nil {
		return err
	}
	watch, err := child.Start(exec.Command(b.program("watch"), fmt.Sprint(t.PID)))
	if err != nil {
		return err
	}
	defer watch.Kill()
	var stop, all, reply []time.Duration
	for range b.Rounds {
		d, err := took(m, "thread_stop", p)
		if err != nil {
			return err
		}
		stop = append(stop, d)
		if _, err := watch.Ask(patience, ""); err != nil {
			return err
		}
		if d, err = took(m, "thread_continue", p); err != nil {
			return err
		}
		reply = append(reply, d)
		if d, err = nanoseconds(watch); err != nil {
			return err
		}
		all = append(all, d)
	}
	const than = "C, in turn"
	goal := report.AtMost(float64(20 * time.Millisecond))
	b.add("stop 50 busy threads", than, summary(stop), reference[0], goal)
	b.add(what+"all go on", than, summary(all), reference[1], goal)
	b.alone(what+"the reply", summary(reply), report.Goal{})
	return nil
}

// busy starts fifty threads that work without end.
func (b *bench) busy() (*target, error) {
	t, err := startTarget(b.program("target"), "50")
	if err != nil {
		return nil, err
	}
	if err := t.Tell("%d", int64(1)<<60); err != nil {
		t.Kill()
		return nil, err
	}
	time.Sleep(100 * time.Millisecond) // until all of them work
	return t, nil
}

// took returns the time that a service takes.
func took(m *rig, service string, p omis.Token) (time.Duration, error) {
	begin := time.Now()
	_, err := m.do(": %s([%s])", service, p)
	return time.Since(begin), err
}

// stopsOfC measures the reference.
func (b *bench) stopsOfC() (sums [2]stat, err error) {
	t, err := b.busy()
	if err != nil {
		return sums, err
	}
	defer t.Kill()
	p, err := child.Start(exec.Command(b.program("stop"), fmt.Sprint(t.PID)))
	if err != nil {
		return sums, err
	}
	defer p.Kill()
	var rounds [2][]time.Duration
	for i := range 2 * b.Rounds {
		d, err := ask(p, "")
		if err != nil {
			return sums, err
		}
		rounds[i%2] = append(rounds[i%2], d)
	}
	return [2]stat{summary(rounds[0]), summary(rounds[1])}, nil
}
