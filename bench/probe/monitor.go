//go:build linux && amd64

package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mirador/omis"
	"mirador/omis/engine"

	"mirador/bench/subject"
)

// attachedTool is a tool of the monitor that is attached to one process.
type attachedTool struct {
	*engine.Tool
	m *rig
}

// attach makes a tool and attaches it to a process.
func (m *rig) attach(pid int) (*attachedTool, error) {
	m.tools++
	h := &attachedTool{m.Engine.Tool(fmt.Sprint("bench", m.tools)), m}
	if _, err := h.do(`: proc_attach3([],%d,"")`, pid); err != nil {
		return nil, errors.Join(err, h.finish())
	}
	return h, nil
}

// do sends a request; it returns any error in the reply as an error, and a
// *subject.Missing after the time limit.
func (h *attachedTool) do(format string, args ...any) (reply omis.Reply, err error) {
	text := fmt.Sprintf(format, args...)
	err = within(func() error {
		var err error
		if reply, err = h.Request(context.Background(), text, nil, 0); err != nil {
			return err
		}
		return reply.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("%.200s: %w", text, err)
	}
	return reply, nil
}

// finish finalizes the tool, which removes all its requests.
func (h *attachedTool) finish() error { return within(h.Finalize) }

func within(do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(subject.Patience):
		return &subject.Missing{Why: "it was not done within " + subject.Patience.String()}
	}
}

// make makes an object by a service.
func (h *attachedTool) make(service string) (omis.Token, error) {
	reply, err := h.do(": %s", service)
	if err != nil {
		return "", err
	}
	return reply.Token(1)
}

// define defines a conditional request and returns its token.
func (h *attachedTool) define(format string, args ...any) (omis.Token, error) {
	text := fmt.Sprintf(format, args...)
	reply, err := h.Request(context.Background(), text, func(omis.Reply) {}, omis.WaitForFirstReply|omis.DontReturnOK)
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", text, err)
	}
	return reply.Token(0)
}

// Services that make timers.
const (
	ordered = `pa_timer_create2("ordered")`
	fast    = `pa_timer_create2("fast")`
	sampled = `pa_timer_create3("ordered",100)`
)

// probe counts or times a function. It returns a *subject.Missing if the placement
// refuses.
func (h *attachedTool) probe(p *subject.Program, task subject.Task) (omis.Token, error) {
	return h.probeBy(p, task, ordered)
}

func (h *attachedTool) probeBy(p *subject.Program, task subject.Task, timer string) (cell omis.Token, err error) {
	create, actions := "pa_counter_create()", []string{"thread_reached_addr([],%#x) : pa_counter_add([%s],1)"}
	at := []uint64{p.Entry(task.Function), p.Return(task.Function)}
	if task.Timed {
		create = timer
		actions = []string{"thread_reached_addr([],%#x) : pa_timer_start([%s])", "thread_reached_addr([],%#x) : pa_timer_stop([%s])"}
	}
	if cell, err = h.make(create); err != nil {
		return "", err
	}
	var requests []omis.Token
	for i, action := range actions {
		request, err := h.define(action, at[i], cell)
		if err != nil {
			return "", err
		}
		requests = append(requests, request)
	}
	if _, err := h.do(": csr_enable([])"); err != nil {
		return "", err
	}
	return cell, h.placed(requests)
}

// placed checks that requests run in the placement to be measured.
func (h *attachedTool) placed(requests []omis.Token) error {
	for _, request := range requests {
		x, err := h.State(request)
		if err != nil {
			return err
		}
		if x.Placement.Name != h.m.placement {
			return &subject.Missing{Why: x.Placement.Why}
		}
	}
	return nil
}

// start starts a contender that uses the monitor.
func (m *rig) start(program *subject.Program, task subject.Task, timer string) (*subject.Standing, error) {
	t, err := program.StartCopy()
	if err != nil {
		return nil, err
	}
	h, err := m.attach(t.PID())
	if err != nil {
		return nil, errors.Join(err, t.End())
	}
	stop := func() error { return errors.Join(h.finish(), t.End()) }
	cell, err := h.probeBy(t.Program, task, timer)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	s := &subject.Standing{Target: t, Function: task.Function, Stop: stop}
	if task.Timed {
		s.Begin = func() error { _, err := h.do(": pa_timer_reset([%s])", cell); return err }
		s.Mean = func() (float64, error) { return h.mean(cell) }
	}
	return s, nil
}

// mean returns the mean that a timer has for the only thread of a process.
func (h *attachedTool) mean(timer omis.Token) (float64, error) {
	reply, err := h.do(": pa_timer_read([%s])", timer)
	if err != nil {
		return 0, err
	}
	// The number of rows, and in each row: process, thread, count, last, sum, …
	values := reply[1][0].Values
	if len(values) < 2 || len(values[1].List) < 5 {
		return 0, fmt.Errorf("a timer has no rows: %v", values)
	}
	row := values[1].List
	count, counted := row[2].Int64()
	sum, summed := row[4].Number()
	if !counted || !summed || count == 0 {
		return 0, fmt.Errorf("a timer measured nothing: %v", row)
	}
	return sum * 1e9 / float64(count), nil
}
