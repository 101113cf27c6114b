package probes

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/syntax"
)

// launch starts a program and sets it going, once everything stands that the
// application needs to know of it. op is held.
func (a *App) launch(ctx context.Context, l node.Launch) error {
	if l.Path == "" {
		return failf(Invalid, "no program to run")
	}
	if l.Dir != "" && l.Env == nil {
		return failf(Invalid, "a working directory is handed over in the environment: give that, too")
	}
	node, err := a.attachNode(ctx)
	if err != nil {
		return err
	}
	l = located(l)
	token, err := a.create(ctx, "proc_create", omis.Tokens(node), omis.String(l.Path),
		stringList(l.Args), stringList(l.Env), stringList(l.IO))
	if err != nil {
		return err
	}
	if err := a.admit(ctx, token, true); err != nil {
		err = errors.Join(err, a.do(ctx, fmt.Sprintf(": proc_send_signal([%s],9)", token)))
		a.expel(ctx, token)
		return err
	}
	a.follow(ctx, token)
	return a.do(ctx, fmt.Sprintf(": thread_continue([%s])", token))
}

// located says the working directory of a launch in terms of proc_create (OMIS
// 8.1.2), which has no parameter for it: files become absolute, and PWD, which
// POSIX defines as the working directory, carries it in the environment.
func located(l node.Launch) node.Launch {
	if l.Dir == "" {
		return l
	}
	l.Path = within(l.Dir, l.Path)
	l.IO = slices.Clone(l.IO)
	for i, file := range l.IO {
		if file != "" {
			l.IO[i] = within(l.Dir, file)
		}
	}
	l.Env = slices.DeleteFunc(slices.Clone(l.Env), func(v string) bool { return strings.HasPrefix(v, "PWD=") })
	l.Env = append(l.Env, "PWD="+l.Dir)
	return l
}

func within(dir, file string) string {
	if path.IsAbs(file) {
		return file
	}
	return path.Join(dir, file)
}

// attach takes processes into the application; after an error, none of them. op
// is held.
func (a *App) attach(ctx context.Context, pids []int) error {
	node, err := a.attachNode(ctx)
	if err != nil {
		return err
	}
	var taken []omis.Token
	var errs Errors
	for _, pid := range pids {
		token, err := a.create(ctx, "proc_attach3", omis.Tokens(node), omis.Int(int64(pid)), omis.String(""))
		if _, known := a.process(token); err == nil && !known {
			taken = append(taken, token)
			err = a.admit(ctx, token, false)
		}
		errs = append(errs, AsErrors(err)...)
	}
	if len(errs) == 0 {
		a.follow(ctx, taken...)
		return nil
	}
	for _, token := range taken {
		a.expel(ctx, token)
	}
	return collected(errs)
}

// attachNode takes the node into the tool's scope; attaching twice does nothing
// (OMIS 8.1.1).
func (a *App) attachNode(ctx context.Context) (omis.Token, error) {
	if a.node != "" {
		return a.node, nil
	}
	node, err := a.create(ctx, "node_attach2", omis.String(a.registry.config.Node))
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.node = node
	return node, nil
}

// admit learns what is to be known of a process and looks out for its end.
func (a *App) admit(ctx context.Context, token omis.Token, started bool) error {
	p, err := a.identify(ctx, token)
	if err != nil {
		return err
	}
	p.Started = started
	a.list(p)
	return a.watchEnd(ctx, token)
}

// list enters a process into the table.
func (a *App) list(p Process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.processes = append(a.processes, p)
	slices.SortFunc(a.processes, func(p, q Process) int {
		if translate.Before(p.Token, q.Token) {
			return -1
		}
		return 1
	})
}

// identify asks for a process' arguments, user and pid.
func (a *App) identify(ctx context.Context, token omis.Token) (Process, error) {
	fields := node.ProcArgv | node.ProcUID | node.ProcLocalID
	reply, err := a.request(ctx, fmt.Sprintf(": proc_get_info([%s],%#x)", token, fields))
	if err != nil {
		return Process{}, err
	}
	if err := translate.Done(reply); err != nil {
		return Process{}, err
	}
	if len(reply) < 2 || len(reply[1]) == 0 || len(reply[1][0].Values) != 3 {
		return Process{}, failf(Unavailable, "the monitor knows nothing of %s", token)
	}
	vs := reply[1][0].Values
	p := Process{Token: token}
	for _, arg := range vs[0].List {
		p.Argv = append(p.Argv, arg.Str)
	}
	uid, _ := vs[1].Int64()
	pid, _ := vs[2].Int64()
	p.UID, p.PID = int(uid), int(pid)
	if a.registry.config.Journal != nil {
		id, err := a.registry.config.Monitor.Identify(p.PID)
		if err != nil {
			return Process{}, failf(NotFound, "process %d has just ended", p.PID)
		}
		p.Start = id.Start
	}
	return p, nil
}

// watchEnd has the monitor tell when a process terminates. Its probes keep
// their last values then.
func (a *App) watchEnd(ctx context.Context, token omis.Token) error {
	ended := func(r omis.Reply) {
		if len(r) > 0 && len(r[0]) > 0 && r[0][0].Status == omis.CSRTriggered {
			a.markGone(token)
		}
	}
	csr, err := a.define(ctx, fmt.Sprintf("proc_has_terminated([%s]) : print([$proc])", token), ended, 0)
	if err != nil {
		return err
	}
	return a.do(ctx, fmt.Sprintf(": csr_enable([%s])", csr))
}

// expel takes a process out of the application again.
func (a *App) expel(ctx context.Context, token omis.Token) {
	a.mu.Lock()
	a.processes = slices.DeleteFunc(a.processes, func(p Process) bool { return p.Token == token })
	a.mu.Unlock()
	if err := a.do(ctx, fmt.Sprintf(": proc_detach([%s])", token)); err != nil {
		a.registry.config.Log.Warn("cannot detach", "app", a.name, "process", token, "error", err)
	}
}

// kill ends the processes that the monitor started.
func (a *App) kill(ctx context.Context) error {
	var ts []string
	for _, p := range a.Processes() {
		if p.Started && !p.Gone {
			ts = append(ts, string(p.Token))
		}
	}
	if len(ts) == 0 {
		return nil
	}
	return a.do(ctx, ": proc_send_signal(["+strings.Join(ts, ",")+"],9)")
}

// create calls a service that creates something and returns its token.
func (a *App) create(ctx context.Context, service string, args ...omis.Value) (omis.Token, error) {
	r := omis.Request{Actions: []omis.Call{{Service: service, Args: args}}}
	reply, err := a.request(ctx, syntax.Print(&r))
	if err != nil {
		return "", err
	}
	return translate.Token(reply, 1)
}

func stringList(ss []string) omis.Value {
	vs := make([]omis.Value, len(ss))
	for i, s := range ss {
		vs[i] = omis.String(s)
	}
	return omis.List(vs...)
}

// do sends a request of which only the errors are of interest; "" is nothing to
// do.
func (a *App) do(ctx context.Context, request string) error {
	if request == "" {
		return nil
	}
	reply, err := a.request(ctx, request)
	if err != nil {
		return err
	}
	return translate.Done(reply)
}

// request sends an unconditional request.
func (a *App) request(ctx context.Context, request string) (omis.Reply, error) {
	return a.send(ctx, request, nil, 0)
}

// define sends a conditional request and returns its token. Later replies go to
// the callback, but for those that the flags leave out.
func (a *App) define(ctx context.Context, request string, callback func(omis.Reply), flags omis.Flags) (omis.Token, error) {
	reply, err := a.send(ctx, request, callback, flags|omis.WaitForFirstReply|omis.DontReturnEnDis)
	if err != nil {
		return "", err
	}
	return translate.Defined(reply)
}

func (a *App) send(ctx context.Context, request string, callback func(omis.Reply), flags omis.Flags) (omis.Reply, error) {
	a.mu.RLock()
	tool := a.tool
	a.mu.RUnlock()
	reply, err := tool.Request(ctx, request, callback, flags)
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, failf(Unavailable, "the monitor does not answer: %v", err)
}
