package measure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mirador/cli/gate/request"
	"mirador/mir"
	"mirador/mir/client"
	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/syntax"
)

// player is a program that is compared with another one: it runs by turns, and is stopped otherwise.
// The duration of every call comes from a trace, because a histogram has an error of some percent.
type player struct {
	*subject
	tool   string
	traces []omis.Token // by limit

	injected []injection // by limit
}

// ring is the number of records that a trace keeps of each thread.
const ring = 4096

var (
	begins = regexp.MustCompile(`pa_timer_start\(\[\w+\]\)`)
	ends   = regexp.MustCompile(`pa_timer_stop\(\[\w+\]\)`)
)

// enter starts a program on one processor, with its load and probes, and stops it.
func (r *Runner) enter(ctx context.Context, s Side, limits []request.Limit) (p *player, err error) {
	t, err := r.start(ctx, s)
	if t == nil {
		return nil, err
	}
	p = &player{subject: t, tool: t.app + "-duet", injected: s.injected}
	if err == nil {
		err = r.settle(ctx, p, limits)
	}
	if err != nil && ctx.Err() == nil && p.ends() {
		err = p.early()
	}
	return p, err
}

// early returns the error of a program that has ended.
func (p *player) early() error {
	how := ""
	if f := p.failure(); f != "" {
		how = " (" + f + ")"
	}
	return p.failed("ended during the measurement%s: a program that is compared has to run until the gate ends it; let it repeat its work", how)
}

func (r *Runner) settle(ctx context.Context, p *player, limits []request.Limit) (err error) {
	// Threads inherit the processor of the first thread, which is the only one yet.
	if err := unix.SchedSetaffinity(p.pid, &r.processor); err != nil {
		return err
	}
	r.favour(p.pid)
	if err := r.begin(ctx, p.subject); err != nil {
		return err
	}
	if r.Load != "" {
		if p.load, err = r.shell(r.Load, p.subject); err != nil {
			return err
		}
	}
	if err := r.locate(ctx, p.subject, limits); err != nil {
		return err
	}
	for i, l := range limits {
		if err := r.trace(ctx, p, l, i); err != nil {
			return fmt.Errorf("line %d of the gate, %s: %w", l.Pos.Line, l.Metric, err)
		}
	}
	return p.stop(ctx)
}

// trace times one in r.sample[i] calls of the unit of limit i, and records their durations in a trace.
// The answer of Explain contains the places where the unit begins and ends.
func (r *Runner) trace(ctx context.Context, p *player, l request.Limit, i int) error {
	explained, err := r.Client.Explain(ctx, p.app, &mir.InstrRequest{
		Region: &mir.CodeRegion{From: r.unit(l.Region, p.subject), To: r.unit(l.To, p.subject)}, Metrics: []mir.Metric{{Name: l.Metric}}, Activated: true,
		Fast: l.Fast,
	})
	if err != nil {
		return err
	}
	clock := "ordered"
	switch {
	case l.Metric == "CPU_TIME":
		clock = "cpu"
	case l.Fast:
		clock = "fast"
	}
	made, err := r.omis(ctx, p, fmt.Sprintf(": proc_attach3([],%d,\"\") pa_timer_create3(%q,%d) pa_trace_create(%d)", p.pid, clock, max(r.sample[i], 1), ring))
	if err != nil {
		return err
	}
	timer, trace := tokenOf(made, 2), tokenOf(made, 3)
	if r.clock.IsZero() {
		if err := r.synchronise(ctx, p, trace); err != nil {
			return err
		}
	}
	more, err := r.inject(ctx, p, i)
	if err != nil {
		return err
	}
	for _, q := range explained.Requests {
		if !begins.MatchString(q.Text) && !ends.MatchString(q.Text) {
			continue
		}
		text := begins.ReplaceAllString(q.Text, slowed(timer, more))
		text = ends.ReplaceAllString(text, fmt.Sprintf("pa_timer_stop([%s]) pa_trace_last([%s],1)", timer, trace))
		if _, err := r.omis(ctx, p, text); err != nil {
			return err
		}
		if r.biases == nil {
			r.biases = map[string]int64{}
		}
		r.biases[l.Region] = max(r.biases[l.Region], q.Placement.Bias)
		if at := q.Placement; at.Name != "inline" {
			r.remarkPlacement(l, at.Name, at.Cost)
		}
	}
	p.traces = append(p.traces, trace)
	_, err = r.omis(ctx, p, ": csr_enable([])")
	return err
}

// tokenOf returns the token that an action of a reply has made, "" if there is none.
func tokenOf(reply omis.Reply, action int) omis.Token {
	if action >= len(reply) || len(reply[action]) == 0 || len(reply[action][0].Values) == 0 {
		return ""
	}
	return omis.Token(reply[action][0].Values[0].Str)
}

// omis sends a request of the player's tool and returns the reply, or the first error in it.
func (r *Runner) omis(ctx context.Context, p *player, text string) (omis.Reply, error) {
	const withoutReplies = "&flags=2" // of the executions of conditional requests
	answer, err := r.Client.Do(ctx, client.Request{
		Method: http.MethodPost, Path: "/omis?tool=" + url.QueryEscape(p.tool) + withoutReplies, Type: "text/plain", Accept: "text/plain", Body: []byte(text),
	})
	if err == nil {
		err = answer.Err()
	}
	if err != nil {
		return nil, err
	}
	reply, err := syntax.ParseReply(string(answer.Body))
	for _, results := range reply {
		for _, one := range results {
			if err == nil && one.Msg != "" && one.Status != omis.OK && one.Status != omis.CSRDefined {
				err = errors.New(one.Msg)
			}
		}
	}
	return reply, err
}

// stop stops the program and waits until all its threads are stopped.
func (p *player) stop(ctx context.Context) error {
	for {
		if err := syscall.Kill(-p.pid, syscall.SIGSTOP); err != nil || p.hasEnded() {
			return p.early()
		}
		if p.isStopped() {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Microsecond):
		}
	}
}

func (p *player) isStopped() bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
	if err != nil {
		return false
	}
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name()) // a number by proc(5)
		if state, err := proc.ThreadState(p.pid, tid); err == nil && state != "T" && state != "t" {
			return false
		}
	}
	return len(tasks) > 0
}

// leave ends the programs of a start.
func (r *Runner) leave(players []*player) (err error) {
	for _, p := range players {
		if p == nil {
			continue
		}
		err = errors.Join(err, r.finish(p.subject))
		ctx, cancel := context.WithTimeout(context.Background(), longestStop)
		// There is no tool if the program has ended before it was probed.
		if left := r.Client.JSON(ctx, client.Request{Method: http.MethodDelete, Path: "/omis/tools/" + url.PathEscape(p.tool)}, nil); !errors.Is(left, client.ErrNotFound) {
			err = errors.Join(err, left)
		}
		cancel()
	}
	return err
}
