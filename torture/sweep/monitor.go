//go:build linux && amd64

package sweep

import (
	"context"
	"fmt"
	"strings"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/linux"
	"mirador/omis/monitor"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// Ways are the ways in which Run sweeps: the placements, the last one with each way to hold threads.
var Ways = []string{inline.Name, kernel.Name, "rendezvous", "ptrace"}

func openMonitor(way string, warden []string) (*monitor.Monitor, error) {
	return monitor.Open(monitor.Config{
		Linux: linux.Config{Name: "sweep", Warden: warden, Ptrace: way == "ptrace"},
		Placers: func(n *linux.Node) []program.Placer {
			switch way {
			case inline.Name:
				return []program.Placer{inline.New(n)}
			case kernel.Name:
				return []program.Placer{kernel.New(nil)}
			}
			return nil
		},
	})
}

// tool is a tool of a monitor with one process.
type tool struct{ *engine.Tool }

// ask sends a request and returns the values of its last result.
func (t tool) ask(format string, args ...any) ([]omis.Value, error) {
	reply, err := t.send(format, args...)
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%.100s: %w", fmt.Sprintf(format, args...), err)
	}
	last := reply[len(reply)-1]
	if len(last) == 0 {
		return nil, nil
	}
	return last[len(last)-1].Values, nil
}

func (t tool) send(format string, args ...any) (omis.Reply, error) {
	return t.Request(context.Background(), fmt.Sprintf(format, args...), nil, 0)
}

// define defines a request about an address.
func (t tool) define(addr uint64, action string) (omis.Token, error) {
	reply, err := t.Request(context.Background(), fmt.Sprintf("thread_reached_addr([],%#x) : %s", addr, action),
		func(omis.Reply) {}, omis.WaitForFirstReply|omis.DontReturnOK|omis.DontReturnEnDis)
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		return "", err
	}
	return reply.Token(0)
}

// enable enables requests and returns the reasons of refusals, by request.
func (t tool) enable(requests []omis.Token) (refused map[omis.Token]string, err error) {
	reply, err := t.send(": csr_enable([%s])", list(requests))
	if err != nil {
		return nil, err
	}
	refused = map[omis.Token]string{}
	for _, results := range reply {
		for _, r := range results {
			if !r.Status.IsError() {
				continue
			}
			if len(r.Objects) == 0 {
				return nil, fmt.Errorf("csr_enable: %s", r.Msg)
			}
			for _, o := range r.Objects {
				refused[o] = r.Msg
			}
		}
	}
	return refused, nil
}

func (t tool) disable(requests []omis.Token) error {
	_, err := t.ask(": csr_disable([%s])", list(requests))
	return err
}

// count reads and resets a counter.
func (t tool) count(counter omis.Token) (int64, error) {
	values, err := t.ask(": pa_counter_sum([%s],2)", counter)
	if err != nil || len(values) < 2 || len(values[1].List) == 0 {
		return 0, err
	}
	row := values[1].List
	if row[0].Kind == omis.KindList {
		row = row[0].List
	}
	n, _ := row[2].Int64()
	_, err = t.ask(": pa_counter_reset([%s])", counter)
	return n, err
}

func list(tokens []omis.Token) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(t))
	}
	return b.String()
}
