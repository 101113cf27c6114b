//go:build linux && amd64

package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/ext/pa"
	"mirador/omis/linux"
	"mirador/omis/place/kernel"
)

// monitor is the real engine over the real node.
type monitor struct {
	node   *linux.Node
	placer *kernel.Placer // nil: everything by trap
	e      *engine.Engine
	turns  int
}

// placing is a node that places programs in the kernel.
type placing struct {
	*linux.Node
	placer omis.Placer
}

func (p placing) Placers() []omis.Placer { return []omis.Placer{p.placer} }

func openMonitor(inKernel bool) (*monitor, error) {
	n, err := linux.Open(linux.Config{Name: "bench"})
	if err != nil {
		return nil, err
	}
	m := &monitor{node: n}
	var node omis.Node = n
	if inKernel {
		m.placer = kernel.New()
		node = placing{n, m.placer}
	}
	if m.e, err = engine.New(node, slog.New(slog.DiscardHandler), pa.New()); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *monitor) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if m.e != nil {
		err = m.e.Close(ctx)
	}
	err = errors.Join(err, m.node.Close(ctx))
	if m.placer != nil {
		err = errors.Join(err, m.placer.Close())
	}
	return err
}

// start probes with a tool of its own, which takes everything away when it ends.
func (m *monitor) start(t *target, s subject) (func() error, error) {
	m.turns++
	tool := m.e.Tool(fmt.Sprint("turn", m.turns))
	do := func(format string, args ...any) (omis.Reply, error) {
		text := fmt.Sprintf(format, args...)
		reply, err := tool.Request(context.Background(), text, nil, 0)
		if err == nil {
			err = reply.Err()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", text, err), tool.Finalize())
		}
		return reply, nil
	}
	made, err := do(`: proc_attach3([],%d,"") pa_counter_create() pa_timer_create()`, t.pid())
	if err != nil {
		return nil, err
	}
	counter, timer := made[2][0].Values[0].Token(), made[3][0].Values[0].Token()
	requests := []string{fmt.Sprintf("thread_reached_addr([],%#x) : pa_counter_add([%s],1)", t.at[s.function], counter)}
	if s.timed {
		requests = []string{
			fmt.Sprintf("thread_reached_addr([],%#x) : pa_timer_start([%s])", t.at[s.function], timer),
			fmt.Sprintf("thread_reached_addr([],%#x) : pa_timer_stop([%s])", t.ret[s.function], timer),
		}
	}
	for _, request := range append(requests, ": csr_enable([])") {
		if _, err := do("%s", request); err != nil {
			return nil, err
		}
	}
	return tool.Finalize, nil
}
