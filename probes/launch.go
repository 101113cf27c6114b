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
)

// launch starts a program, and lets it run after the application's probes are installed, unless
// it is to be paused, or held for the caller. The caller holds op.
func (a *App) launch(ctx context.Context, l node.Launch, pause *Pause, held bool) (omis.Token, error) {
	if l.Path == "" {
		return "", failf(Invalid, "no program to run")
	}
	if l.Dir != "" && l.Env == nil {
		return "", failf(Invalid, "a working directory is handed over in the environment: give that, too")
	}
	node, err := a.attachNode(ctx)
	if err != nil {
		return "", err
	}
	l = located(l)
	token, err := a.tool.create(ctx, "proc_create", omis.Tokens(node), omis.String(l.Path),
		stringList(l.Args), stringList(l.Env), stringList(l.IO))
	if err != nil {
		return "", err
	}
	if err := a.begin(ctx, token, pause, held); err != nil {
		ctx = context.WithoutCancel(ctx)
		if p, _ := a.processes.find(token); !p.Gone {
			err = errors.Join(err, a.tool.do(ctx, fmt.Sprintf(": proc_send_signal([%s],9)", token)))
		}
		a.expel(ctx, token)
		return "", err
	}
	return token, nil
}

// begin adds a created process to the application and lets it run, or pauses it. A held one only stops where its
// libraries are mapped.
func (a *App) begin(ctx context.Context, token omis.Token, pause *Pause, held bool) error {
	if err := a.admit(ctx, token, true); err != nil {
		return err
	}
	if pause == nil && !held {
		a.follow(ctx, token)
		return a.tool.do(ctx, fmt.Sprintf(": thread_continue([%s])", token))
	}
	where, err := a.pauses.complete(ctx, token)
	if err != nil {
		return err
	}
	a.follow(ctx, token)
	if pause == nil {
		return nil
	}
	return a.pauses.begin(ctx, token, where, *pause)
}

// located expresses the working directory of a launch in terms of proc_create (OMIS 8.1.2),
// which has no parameter for it: it makes file names absolute and sets PWD, which POSIX defines
// as the working directory.
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

// attach adds running processes to the application; if one fails, it adds none. The caller holds
// op.
func (a *App) attach(ctx context.Context, pids []int) error {
	node, err := a.attachNode(ctx)
	if err != nil {
		return err
	}
	var taken []omis.Token
	var errs Errors
	for _, pid := range pids {
		token, err := a.tool.create(ctx, "proc_attach3", omis.Tokens(node), omis.Int(int64(pid)), omis.String(""))
		if _, known := a.processes.find(token); err == nil && !known {
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

// attachNode attaches the tool to the node. Attaching twice has no effect (OMIS 8.1.1).
func (a *App) attachNode(ctx context.Context) (omis.Token, error) {
	if a.node != "" {
		return a.node, nil
	}
	node, err := a.tool.create(ctx, "node_attach2", omis.String(a.registry.config.Node))
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.node = node
	return node, nil
}

// admit adds a process to the table and watches for its end.
func (a *App) admit(ctx context.Context, token omis.Token, started bool) error {
	p, err := a.identify(ctx, token)
	if err != nil {
		return err
	}
	p.Started = started
	a.processes.add(p)
	return a.watchEnd(ctx, token)
}

// mostArgv limits the bytes of a process's arguments that an application keeps, and writes to
// the journal: a process may have megabytes of them, and be in many applications.
const mostArgv = 16 << 10

// shortened returns the first arguments of a process.
func shortened(args []omis.Value) (list []string) {
	left := mostArgv
	for _, arg := range args {
		if len(arg.Str) >= left {
			return append(list, strings.ToValidUTF8(arg.Str[:left], "")+"…")
		}
		left -= len(arg.Str) + 1
		list = append(list, arg.Str)
	}
	return list
}

// identify asks the monitor for the arguments, user and pid of a process.
func (a *App) identify(ctx context.Context, token omis.Token) (Process, error) {
	fields := node.ProcArgv | node.ProcUID | node.ProcLocalID
	reply, err := a.tool.request(ctx, fmt.Sprintf(": proc_get_info([%s],%#x)", token, fields))
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
	p.Argv = shortened(vs[0].List)
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

// watchEnd requests an event for the end of a process. Its probes keep their last values then.
func (a *App) watchEnd(ctx context.Context, token omis.Token) error {
	ended := func(r omis.Reply) {
		if isTriggered(r) {
			a.processes.markGone(token)
		}
	}
	csr, err := a.tool.define(ctx, fmt.Sprintf("proc_has_terminated([%s]) : print([$proc])", token), ended, 0)
	if err != nil {
		return err
	}
	return a.tool.do(ctx, fmt.Sprintf(": csr_enable([%s])", csr))
}

// isTriggered reports whether a reply is of an execution of a conditional request.
func isTriggered(r omis.Reply) bool {
	return len(r) > 0 && len(r[0]) > 0 && r[0][0].Status == omis.CSRTriggered
}

// expel removes a process from the application.
func (a *App) expel(ctx context.Context, token omis.Token) {
	a.processes.remove(token)
	if err := a.tool.do(ctx, fmt.Sprintf(": proc_detach([%s])", token)); err != nil {
		a.registry.config.Log.Warn("cannot detach", "app", a.name, "process", token, "error", err)
	}
}

// kill ends the processes that the monitor started.
func (a *App) kill(ctx context.Context) error {
	var ts []string
	for _, p := range a.processes.list() {
		if p.Started && !p.Gone {
			ts = append(ts, string(p.Token))
		}
	}
	if len(ts) == 0 {
		return nil
	}
	return a.tool.do(ctx, ": proc_send_signal(["+strings.Join(ts, ",")+"],9)")
}
