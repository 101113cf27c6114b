//go:build linux && amd64

package main

import (
	"context"
	"fmt"
	"strings"

	"mirador/mir/client"
	"mirador/omis"
	"mirador/omis/syntax"
)

// tool sends OMIS requests about one victim. One goroutine uses it.
type tool struct {
	gateway *gateway
	name    string
	pid     int
	life    int        // life of the gateway to which it attached
	process omis.Token // token of the victim
	asked   []string   // the last requests, with the answers
}

// mostAsked is the number of requests that are printed if a victim fails.
const mostAsked = 40

func (t *tool) remember(request string, reply []byte, err error) {
	if err != nil {
		reply = []byte(err.Error())
	}
	line := fmt.Sprintf("%.300s -> %.200s", request, strings.Join(strings.Split(strings.TrimSpace(string(reply)), "\n"), "; "))
	t.asked = append(t.asked[max(0, len(t.asked)+1-mostAsked):], line)
}

// fresh attaches to the victim if the gateway was killed since the last call, and reports this: all
// earlier requests are gone.
func (t *tool) fresh(ctx context.Context) (bool, error) {
	now := t.gateway.now()
	if t.life == now {
		return false, nil
	}
	t.life = now
	values, err := t.ask(ctx, `: proc_attach3([],%d,"")`, t.pid)
	if err != nil {
		t.life = 0
		return true, err
	}
	t.process = values[0].Token()
	return true, nil
}

// reply sends a request.
func (t *tool) reply(ctx context.Context, request string, flags omis.Flags) (omis.Reply, error) {
	path := fmt.Sprintf("/omis?tool=%s&flags=%d", t.name, flags|omis.WaitForFirstReply)
	reply, err := t.gateway.ask(ctx, t.life, client.Request{Method: "POST", Path: path, Accept: "text/plain", Body: []byte(request)})
	told := fmt.Sprintf("%s (flags %d)", request, flags)
	if err != nil {
		t.remember(told, nil, err)
		return nil, err
	}
	t.remember(told, reply.Body, nil)
	return syntax.ParseReply(string(reply.Body))
}

// ask sends a request that must succeed and returns the values of its last result.
func (t *tool) ask(ctx context.Context, format string, args ...any) ([]omis.Value, error) {
	request := fmt.Sprintf(format, args...)
	reply, err := t.reply(ctx, request, 0)
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%.200s: %w", request, err)
	}
	if len(reply) == 0 {
		return nil, nil
	}
	last := reply[len(reply)-1]
	if len(last) == 0 {
		return nil, nil
	}
	return last[len(last)-1].Values, nil
}

// probe is a counter of a function's calls, or a timer, with the conditional requests that change it.
type probe struct {
	function
	timer  bool
	object omis.Token // the counter or timer
	csrs   []omis.Token
	active bool
	want   int64 // true number of calls, if known
}

// define creates a probe that is not active. If told is true, every hit is reported, which only the
// placement trap can do.
func (t *tool) define(ctx context.Context, f function, timed, told bool) (*probe, error) {
	p := &probe{function: f, timer: timed}
	flags := omis.DontReturnEnDis
	if !told {
		flags |= omis.DontReturnOK
	}
	kind := "counter"
	if timed {
		kind = "timer"
	}
	values, err := t.ask(ctx, ": pa_%s_create()", kind)
	if err != nil {
		return nil, err
	}
	p.object = values[0].Token()
	feeds := map[uint64]string{f.addr: fmt.Sprintf("pa_counter_add([%s],1)", p.object)}
	if timed {
		exits, err := f.exits()
		if err != nil {
			return nil, err
		}
		for _, exit := range exits {
			feeds[exit] = fmt.Sprintf("pa_timer_stop([%s])", p.object)
		}
		feeds[f.addr] = fmt.Sprintf("pa_timer_start([%s])", p.object)
	}
	for addr, action := range feeds {
		reply, err := t.reply(ctx, fmt.Sprintf("thread_reached_addr([%s],%#x) : %s", t.process, addr, action), flags)
		if err == nil {
			err = reply.Err()
		}
		if err != nil {
			return nil, err
		}
		p.csrs = append(p.csrs, reply[0][0].Values[0].Token())
	}
	return p, nil
}

// all sends one request about many probes, and returns the reasons of refusals.
func (t *tool) all(ctx context.Context, service string, probes []*probe) (refused []string, err error) {
	var csrs []string
	for _, p := range probes {
		for _, csr := range p.csrs {
			csrs = append(csrs, string(csr))
		}
	}
	reply, err := t.reply(ctx, fmt.Sprintf(": %s([%s])", service, strings.Join(csrs, ",")), 0)
	if err != nil {
		return nil, err
	}
	for _, results := range reply {
		for _, r := range results {
			if r.Status.IsError() {
				refused = append(refused, r.Msg)
			}
		}
	}
	return refused, nil
}

// remove deletes probes.
func (t *tool) remove(ctx context.Context, probes []*probe) error {
	if len(probes) == 0 {
		return nil
	}
	if refused, err := t.all(ctx, "csr_delete", probes); err != nil || len(refused) > 0 {
		return fmt.Errorf("cannot remove: %w %q", err, refused)
	}
	for _, p := range probes {
		kind := "counter"
		if p.timer {
			kind = "timer"
		}
		if _, err := t.ask(ctx, ": pa_%s_delete([%s])", kind, p.object); err != nil {
			return err
		}
	}
	return nil
}

// calls returns the number of calls that a probe has counted.
func (t *tool) calls(ctx context.Context, p *probe) (int64, error) {
	service, at := "pa_counter_sum([%s],2)", 2
	if p.timer {
		service = "pa_timer_sum([%s],2)"
	}
	values, err := t.ask(ctx, ": "+service, p.object)
	if err != nil || len(values) < 2 || len(values[1].List) == 0 {
		return 0, err
	}
	row := values[1].List
	if row[0].Kind == omis.KindList {
		row = row[0].List
	}
	n, _ := row[at].Int64()
	if open, _ := row[len(row)-1].Int64(); p.timer && open != 0 {
		return n, fmt.Errorf("%s: %d intervals are open", p.name, open)
	}
	return n, nil
}

// finalize finalises the tool, which removes all its requests.
func (t *tool) finalize(ctx context.Context) error {
	if t.life != t.gateway.now() {
		return nil // the gateway does not know the tool
	}
	_, err := t.gateway.ask(ctx, t.life, client.Request{Method: "DELETE", Path: "/omis/tools/" + t.name})
	return err
}
