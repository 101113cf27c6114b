package engine

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"

	"mirador/omis"
	"mirador/omis/node"
)

// The manipulation services for processes (OMIS 8.1.2).

func procCreate(x *execution, c *call) ([]omis.Value, error) {
	env := texts(c.args[3])
	n := c.object.(*machine)
	id, err := n.Launch(node.Launch{
		Path: c.args[1].Str, Args: texts(c.args[2]), Env: env, IO: texts(c.args[4]), Dir: startDir(env),
	})
	if err != nil {
		return nil, err
	}
	values, err := x.attached(place{n, id})
	if err != nil {
		// No tool could ever continue it.
		return nil, errors.Join(err, n.Signal(id, int(syscall.SIGKILL)))
	}
	x.e.reg.lookup(values[0].Token()).(*process).halts.created()
	return values, nil
}

// startDir returns the directory of a new process: proc_create has no parameter for it, but the environment
// contains PWD. Otherwise it is the monitor's own directory.
func startDir(env []string) string {
	for _, v := range env {
		if dir, ok := strings.CutPrefix(v, "PWD="); ok && filepath.IsAbs(dir) {
			return dir
		}
	}
	return ""
}

// texts returns a list of strings. An empty list becomes nil, which lets the node choose.
func texts(v omis.Value) []string {
	var list []string
	for _, s := range v.List {
		list = append(list, s.Str)
	}
	return list
}

// attached attaches to a process and returns its token.
func (x *execution) attached(at place) ([]omis.Value, error) {
	p, err := x.e.attach(x.tool, at)
	if err != nil {
		return nil, err
	}
	x.conv.forget()
	return []omis.Value{omis.TokenValue(p.token)}, nil
}

// procAttach3 finds the executable's path itself, and ignores the tool's parameter.
func procAttach3(x *execution, c *call) ([]omis.Value, error) {
	pid, err := c.int(1)
	if err != nil {
		return nil, err
	}
	if pid <= 0 || pid > 1<<31-1 {
		return nil, omis.Errorf(omis.ParameterError, "%d is no process id", pid)
	}
	n := c.object.(*machine)
	if err := x.e.spareItself(n, int(pid)); err != nil {
		return nil, err
	}
	id, err := n.Identify(int(pid))
	if err != nil {
		return nil, err
	}
	return x.attached(place{n, id})
}

func procAttach(x *execution, c *call) ([]omis.Value, error) {
	p := c.object.(*process)
	at := p.at()
	id, err := at.node.Identify(at.id.PID)
	if err != nil {
		return nil, err
	}
	if id != at.id {
		return nil, unknownToken(p.token)
	}
	_, err = x.attached(*at)
	return nil, err
}

func procDetach(x *execution, c *call) ([]omis.Value, error) {
	x.e.detach(x.tool, c.object.(*process))
	x.conv.forget()
	return nil, nil
}

func procSendSignal(x *execution, c *call) ([]omis.Value, error) {
	sig, err := c.small(1)
	if err != nil {
		return nil, err
	}
	at := c.object.(*process).at()
	return nil, at.node.Signal(at.id, sig)
}

func procSetPriority(_ *execution, c *call) ([]omis.Value, error) {
	nice, err := c.small(1)
	if err != nil {
		return nil, err
	}
	at := c.object.(*process).at()
	control, err := capability(at.node, at.node.Can.ThreadControl, c.service)
	if err != nil {
		return nil, err
	}
	return nil, control.SetPriority(at.id, nice)
}
