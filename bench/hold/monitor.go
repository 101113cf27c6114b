//go:build linux && amd64

package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/linux"
	"mirador/omis/linux/warden"
	"mirador/omis/monitor"
)

// WardenCommand is the first argument that makes this program a warden.
const WardenCommand = "warden"

// RunWarden runs a warden.
func RunWarden() error { return warden.Run(os.Stdin) }

// rig is a monitor without placements except trap, with one tool.
type rig struct {
	*monitor.Monitor
	tool *engine.Tool
}

func openRig(c linux.Config) (*rig, error) {
	c.Name, c.Warden = "bench", []string{"/proc/self/exe", WardenCommand}
	m, err := monitor.Open(monitor.Config{Linux: c})
	if err != nil {
		return nil, err
	}
	return &rig{m, m.Engine.Tool("bench")}, nil
}

func (m *rig) close() error {
	return within(patience, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return m.Close(ctx)
	})
}

// do sends a request; it returns any error in the reply as an error.
func (m *rig) do(format string, args ...any) (omis.Reply, error) {
	var reply omis.Reply
	text := fmt.Sprintf(format, args...)
	err := within(patience, func() error {
		var err error
		if reply, err = m.tool.Request(context.Background(), text, nil, 0); err != nil {
			return err
		}
		return reply.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return reply, nil
}

// attach attaches to a process and returns its token.
func (m *rig) attach(pid int) (omis.Token, error) {
	reply, err := m.do(`: proc_attach3([],%d,"")`, pid)
	if err != nil {
		return "", err
	}
	return reply.Token(1)
}

// count defines and enables a request that counts how often an address is reached. Before
// that it checks by a hit that the node holds threads in the given way.
func (m *rig) count(pid int, addr uint64, way string, hit func() error) error {
	p, err := m.attach(pid)
	if err != nil {
		return err
	}
	if err := m.held(p, addr, way, hit); err != nil {
		return err
	}
	reply, err := m.do(": pa_counter_create()")
	if err != nil {
		return err
	}
	counter, err := reply.Token(1)
	if err != nil {
		return err
	}
	_, err = m.enable(fmt.Sprintf("thread_reached_addr([%s],%#x) : pa_counter_add([%s],1)", p, addr, counter), func(omis.Reply) {})
	return err
}

// held checks how the node holds threads at an address.
func (m *rig) held(p omis.Token, addr uint64, way string, hit func() error) error {
	said := make(chan omis.Reply, 100)
	csr, err := m.enable(fmt.Sprintf("thread_reached_addr([%s],%#x) : print([$held])", p, addr), func(r omis.Reply) { said <- r })
	if err != nil {
		return err
	}
	if err := hit(); err != nil {
		return err
	}
	for {
		select {
		case r := <-said:
			if len(r) < 2 || len(r[1]) == 0 || len(r[1][0].Values) == 0 {
				continue // the request was defined or enabled
			}
			if got := fmt.Sprint(r[1][0].Values); !strings.Contains(got, way) {
				return fmt.Errorf("threads are held by %s, not by %s", got, way)
			}
			_, err := m.do(": csr_delete([%s])", csr)
			return err
		case <-time.After(patience):
			return errors.New("no thread was held")
		}
	}
}

// enable defines and enables a conditional request.
func (m *rig) enable(request string, hear func(omis.Reply)) (csr omis.Token, err error) {
	reply, err := m.tool.Request(context.Background(), request, hear, omis.WaitForFirstReply|omis.DontReturnOK)
	if err != nil {
		return "", err
	}
	if err := reply.Err(); err != nil {
		return "", err
	}
	if csr, err = reply.Token(0); err != nil {
		return "", err
	}
	_, err = m.do(": csr_enable([%s])", csr)
	return csr, err
}

// prints sends the shortest request that has a result, n times.
func (m *rig) prints(n int) error {
	return within(patience, func() error {
		for range n {
			reply, err := m.tool.Request(context.Background(), ": print([1])", nil, 0)
			if err != nil {
				return err
			}
			if err := reply.Err(); err != nil {
				return err
			}
		}
		return nil
	})
}
