package probes

import (
	"context"
	"sync"

	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/syntax"
)

// connection sends the requests of an application to the monitor. It is the application's
// tool: the monitor has a scope for it, so the empty token list means the whole application.
// Its methods may be called from any goroutine.
type connection struct {
	mu   sync.RWMutex
	tool omis.Tool // nil until connected
}

// connect gives the connection its tool.
func (c *connection) connect(tool omis.Tool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tool = tool
}

// connected returns the tool, nil before connect.
func (c *connection) connected() omis.Tool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tool
}

// create calls a service that creates an object, and returns the token of the object.
func (c *connection) create(ctx context.Context, service string, args ...omis.Value) (omis.Token, error) {
	r := omis.Request{Actions: []omis.Call{{Service: service, Args: args}}}
	reply, err := c.request(ctx, syntax.Print(&r))
	if err != nil {
		return "", err
	}
	return translate.Token(reply, 1)
}

// do sends a request whose results are not needed. It does nothing for "".
func (c *connection) do(ctx context.Context, request string) error {
	if request == "" {
		return nil
	}
	reply, err := c.request(ctx, request)
	if err != nil {
		return err
	}
	return translate.Done(reply)
}

// request sends an unconditional request.
func (c *connection) request(ctx context.Context, request string) (omis.Reply, error) {
	return c.send(ctx, request, nil, 0)
}

// read sends requests for values as one request, and returns the reply to each.
func (c *connection) read(ctx context.Context, reads []string) ([]omis.Reply, error) {
	switch len(reads) {
	case 0:
		return nil, nil
	case 1:
		reply, err := c.request(ctx, reads[0])
		return []omis.Reply{reply}, err
	}
	many := translate.ReadMany(reads)
	reply, err := c.request(ctx, many.Request)
	if err != nil {
		return nil, err
	}
	return many.Split(reply), nil
}

// define sends a conditional request and returns its token. The callback gets the later
// replies, except for those that the flags omit.
func (c *connection) define(ctx context.Context, request string, callback func(omis.Reply), flags omis.Flags) (omis.Token, error) {
	reply, err := c.send(ctx, request, callback, flags|omis.WaitForFirstReply|omis.DontReturnEnDis)
	if err != nil {
		return "", err
	}
	return translate.Defined(reply)
}

func (c *connection) send(ctx context.Context, request string, callback func(omis.Reply), flags omis.Flags) (omis.Reply, error) {
	reply, err := c.connected().Request(ctx, request, callback, flags)
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, failf(Unavailable, "the monitor does not answer: %v", err)
}

// stringList returns a list of strings as a value of OMIS.
func stringList(ss []string) omis.Value {
	vs := make([]omis.Value, len(ss))
	for i, s := range ss {
		vs[i] = omis.String(s)
	}
	return omis.List(vs...)
}
