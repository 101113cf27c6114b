package probes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/syntax"
	"mirador/probes"
	"mirador/sir"
)

// application is described by the section targets of a case.
type application struct {
	node  translate.Node
	procs []*process
}

type process struct {
	program *sir.Program // of the last module
	translate.Process
	pid        int
	goroutines []node.GoroutineInfo
}

// parseTargets reads the section targets. Its lines begin with node, process, thread, module, unit
// or goroutine; each belongs to the latest process or module before it.
func parseTargets(text string) (*application, error) {
	app := &application{node: translate.Node{Token: "n_1", Name: "here"}}
	for n, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if err := app.line(fields); err != nil {
			return nil, fmt.Errorf("targets, line %d: %w", n+1, err)
		}
	}
	return app, nil
}

func (app *application) line(f []string) error {
	if f[0] == "node" && len(f) == 3 {
		app.node.Token, app.node.Name = omis.Token(f[1]), f[2]
		return nil
	}
	if f[0] == "site" && len(f) == 2 {
		app.node.Site = f[1]
		return nil
	}
	if f[0] == "process" && len(f) == 4 {
		p := &process{}
		p.Token, p.Name = omis.Token(f[1]), f[2]
		fmt.Sscan(f[3], &p.pid)
		app.procs = append(app.procs, p)
		return nil
	}
	if len(app.procs) == 0 {
		return fmt.Errorf("%s before a process", f[0])
	}
	return app.procs[len(app.procs)-1].line(f)
}

func (p *process) line(f []string) error {
	switch {
	case f[0] == "thread" && len(f) >= 3:
		p.Threads = append(p.Threads, translate.Thread{Token: omis.Token(f[1]), Name: f[2], Master: len(p.Threads) == 0})
	case f[0] == "module" && len(f) == 3:
		p.program = &sir.Program{Path: f[1]}
		m := newModule(p.program)
		fmt.Sscan(f[2], &m.Bias)
		p.Modules = append(p.Modules, m)
	case f[0] == "unit" && len(f) >= 4 && len(p.Modules) > 0:
		u := sir.Region{ID: f[1], Name: f[2], Symbol: f[2], Kind: sir.Function}
		m := &p.Modules[len(p.Modules)-1]
		fmt.Sscan(f[3], &u.Entry)
		for _, exit := range f[4:] {
			var addr uint64
			fmt.Sscan(exit, &addr)
			m.Locator.(exits)[u.ID] = append(m.Locator.(exits)[u.ID], addr)
		}
		p.program.Regions = append(p.program.Regions, u)
		m.Units = sir.NewIndex(p.program)
	case f[0] == "goroutine" && len(f) >= 5:
		g := node.GoroutineInfo{State: f[2], Reason: strings.Join(f[5:], " ")}
		fmt.Sscan(f[1], &g.ID)
		fmt.Sscan(f[3], &g.TID)
		for _, frame := range strings.Split(f[4], ",") {
			var pc uint64
			fmt.Sscan(frame, &pc)
			g.Frames = append(g.Frames, node.Frame{PC: pc})
		}
		p.goroutines = append(p.goroutines, g)
	default:
		return fmt.Errorf("cannot read %q", strings.Join(f, " "))
	}
	return nil
}

// exits is a Locator with the exits of regions by their ids.
type exits map[string][]uint64

func (exits) Entries(r *sir.Region) ([]uint64, error) { return []uint64{r.Entry}, nil }
func (e exits) Exits(r *sir.Region) ([]uint64, error) { return e[r.ID], nil }

// newModule returns a module without regions.
func newModule(p *sir.Program) translate.Module {
	return translate.Module{Path: p.Path, Units: sir.NewIndex(p), Locator: exits{}}
}

// config returns the configuration of a registry with an application and a tool.
func (app *application) config(tool omis.Tool) probes.Config {
	return probes.Config{Node: app.node.Name, Site: app.node.Site, Monitor: scripted{tool}, Runtime: app}
}

// scripted is a monitor with one tool.
type scripted struct{ tool omis.Tool }

func (s scripted) Tool(string) (omis.Tool, error)            { return s.tool, nil }
func (scripted) Identify(pid int) (omis.ProcID, error)       { return omis.ProcID{PID: pid}, nil }
func (scripted) RecallProcess(omis.ProcID, omis.Token)       {}
func (scripted) Settle() (orphans []program.Orphan, _ error) { return nil, nil }

func (app *application) Name(pid int) string { return app.byPID(pid).Name }

func (app *application) Modules(_ context.Context, pid int, _ string) ([]translate.Module, error) {
	return app.byPID(pid).Modules, nil
}

func (app *application) Resolver(_ context.Context, pid int) (func(uint64, bool) string, error) {
	return func(pc uint64, first bool) string { return fmt.Sprintf("%s+%#x", app.byPID(pid).Name, pc) }, nil
}

// Start says that every process has what it needs.
func (app *application) Start(int) (node.Start, error) { return node.Start{}, nil }

// Goroutines returns the goroutines of a process, with at most depth frames.
func (*application) Weavings(string, int) []string { return nil }

func (*application) Opened(int) ([]translate.Library, error) { return nil, nil }

func (app *application) Goroutines(_ context.Context, pid, depth int) (list []node.GoroutineInfo, _ error) {
	for _, g := range app.byPID(pid).goroutines {
		g.Frames = g.Frames[:min(depth, len(g.Frames))]
		list = append(list, g)
	}
	return list, nil
}

func (app *application) byPID(pid int) *process {
	for _, p := range app.procs {
		if p.pid == pid {
			return p
		}
	}
	return &process{}
}

func (app *application) pids() []int {
	var pids []int
	for _, p := range app.procs {
		pids = append(pids, p.pid)
	}
	return pids
}

// reply answers requests for information about the application; ok is false for other requests.
func (app *application) reply(request string) (omis.Reply, bool) {
	r, err := syntax.Parse(request)
	if err != nil {
		return nil, false
	}
	if r.Event != nil {
		if r.Event.Service != "proc_has_terminated" {
			return nil, false
		}
		return omis.Reply{{{Status: omis.CSRDefined, Values: []omis.Value{omis.TokenValue("c_90")}}}, {}}, true
	}
	answer := omis.Reply{{{Status: omis.OK}}}
	for _, c := range r.Actions {
		results, ok := app.service(c)
		if !ok {
			return nil, false
		}
		answer = append(answer, results)
	}
	return answer, true
}

func (app *application) service(c omis.Call) (omis.ServiceResult, bool) {
	one := func(of omis.Token, v ...omis.Value) (omis.ServiceResult, bool) {
		return omis.ServiceResult{{Objects: []omis.Token{of}, Values: v}}, true
	}
	switch text := string(syntax.AppendValues(nil, c.Args)); c.Service {
	case "node_attach2":
		return one(app.node.Token, omis.TokenValue(app.node.Token))
	case "proc_attach3":
		pid, _ := c.Args[1].Int64()
		return one(app.node.Token, omis.TokenValue(app.byPID(int(pid)).Token))
	case "csr_enable":
		return omis.ServiceResult{{}}, text == "[c_90]"
	case "proc_get_info":
		return app.processInfo(c)
	case "thread_get_info":
		return app.threadInfo(c)
	}
	return nil, false
}

// processInfo answers the requests of Attach about a process, and requests for all pids.
func (app *application) processInfo(c omis.Call) (omis.ServiceResult, bool) {
	var rs omis.ServiceResult
	flags, _ := c.Args[1].Int64()
	for _, p := range app.procs {
		pid := omis.Int(int64(p.pid))
		switch {
		case flags == 0x206 && c.Args[0].List[0].Token() == p.Token:
			rs = append(rs, omis.ObjectResult{Objects: []omis.Token{p.Token}, Values: []omis.Value{omis.List(omis.String("bin/" + p.Name)), omis.Int(0), pid}})
		case flags == 0x200 && len(c.Args[0].List) == 0:
			rs = append(rs, omis.ObjectResult{Objects: []omis.Token{p.Token}, Values: []omis.Value{pid}})
		}
	}
	return rs, flags == 0x206 || flags == 0x200
}

func (app *application) threadInfo(c omis.Call) (omis.ServiceResult, bool) {
	var rs omis.ServiceResult
	flags, _ := c.Args[1].Int64()
	for _, p := range app.procs {
		for i, th := range p.Threads {
			rs = append(rs, omis.ObjectResult{Objects: []omis.Token{th.Token}, Values: []omis.Value{omis.TokenValue(p.Token), omis.Int(int64(p.pid + i))}})
		}
	}
	return rs, flags == 0x81
}

// exchange is a request as it was sent, and its reply in OMIS notation.
type exchange struct {
	request string
	reply   string
}

// script is a tool that answers with the replies in a case. It answers requests for information
// about the application itself, unless complete is set.
type script struct {
	app *application

	mu       sync.Mutex
	complete bool // the case has the replies to all requests
	next     []exchange
	seen     []exchange
	missing  []string // requests without a reply
}

var _ omis.Tool = (*script)(nil)

func (s *script) Request(_ context.Context, request string, _ func(omis.Reply), flags omis.Flags) (omis.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(request, "thread_reached_addr") && flags&omis.DontReturnOK == 0 {
		return nil, fmt.Errorf("each hit would cause a reply that no client reads: %s", request)
	}
	if !s.complete {
		if reply, ok := s.app.reply(request); ok {
			return reply, nil
		}
	}
	var reply string
	if len(s.next) > 0 {
		reply, s.next = s.next[0].reply, s.next[1:]
	}
	s.seen = append(s.seen, exchange{request, reply})
	if reply == "" {
		s.missing = append(s.missing, request)
		return nil, fmt.Errorf("the case has no reply to %s", request)
	}
	return syntax.ParseReply(reply)
}

func (s *script) Finalize() error { return nil }

// play sets the expected requests and their replies.
func (s *script) play(t *testing.T, text string, complete bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.seen, s.missing, s.complete = parseExchanges(text), nil, nil, complete
}

// played returns the actual requests and replies.
func (s *script) played() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, x := range s.seen {
		b.WriteString(x.request + "\n")
		for line := range strings.Lines(x.reply) {
			b.WriteString("    " + line)
		}
	}
	return b.String()
}

// parseExchanges reads lines with requests, each followed by its reply in indented lines.
func parseExchanges(text string) []exchange {
	var xs []exchange
	for line := range strings.Lines(text) {
		reply, indented := strings.CutPrefix(line, "    ")
		switch {
		case strings.TrimSpace(line) == "":
		case indented && len(xs) > 0:
			xs[len(xs)-1].reply += reply
		default:
			xs = append(xs, exchange{request: strings.TrimSuffix(line, "\n")})
		}
	}
	return xs
}

// Explain and State report that all requests run by trap.
func (s *script) Explain(_ []string, requests ...string) ([]omis.Explanation, error) {
	return slices.Repeat([]omis.Explanation{trapped()}, len(requests)), nil
}
func (s *script) State(omis.Token) (omis.Explanation, error) { return trapped(), nil }

func (s *script) Spent([]omis.Token) (omis.Spending, error) {
	return omis.Spending{}, errors.New("the cost is not known")
}

func (s *script) Keep(omis.Token, string, ...omis.ProcID) (lost time.Time, err error) {
	return time.Time{}, nil
}

func trapped() omis.Explanation {
	return omis.Explanation{Placement: omis.Placement{Name: "trap", Why: "there is no other", Cost: 10_000}}
}
