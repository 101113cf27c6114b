package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"mirador/mir/client"
	"mirador/omis/syntax"
)

// These are the first and the longest pause between attempts to connect a stream again.
const (
	reconnectPause        = 200 * time.Millisecond
	longestReconnectPause = 5 * time.Second
)

// follower prints the replies to conditional requests. If the stream breaks off, follower connects
// again and continues after the last reply. The gateway then reports how many replies were lost.
type follower struct {
	session *omisSession
	path    string
	last    string // the id of the last event
	done    chan struct{}
}

// follow starts to print. It ignores a gateway that refuses the stream, since most requests are not
// conditional.
func (s *omisSession) follow(ctx context.Context) *follower {
	tool := s.tool
	if tool == "" {
		tool = "-"
	}
	f := &follower{session: s, path: "/omis/tools/" + url.PathEscape(tool) + "/replies", done: make(chan struct{})}
	stream, err := f.connect(ctx)
	if err != nil {
		return nil
	}
	go f.run(ctx, stream)
	return f
}

// errRefused reports that the gateway refuses the stream, so that another attempt is useless.
type errRefused struct{ reason string }

func (e errRefused) Error() string { return e.reason }

// connect opens the stream after the last reply.
func (f *follower) connect(ctx context.Context) (*client.Stream, error) {
	path := f.path
	if f.last != "" {
		path += "?after=" + f.last
	}
	stream, refused, err := f.session.gateway.Stream(ctx, path)
	switch {
	case err != nil:
		return nil, err
	case refused == nil:
		return stream, nil
	case refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests:
		return nil, errors.New(refused.Message())
	}
	return nil, errRefused{refused.Message()}
}

// run prints replies until the session ends.
func (f *follower) run(ctx context.Context, stream *client.Stream) {
	defer close(f.done)
	for {
		stop := context.AfterFunc(ctx, func() { stream.Close() })
		f.print(stream)
		stop()
		stream.Close()
		if ctx.Err() != nil {
			return
		}
		f.session.out.print("note: the stream of replies broke off; connecting again\n")
		var err error
		if stream, err = f.reconnect(ctx); err != nil {
			if ctx.Err() == nil {
				f.session.out.print(fmt.Sprintf("error: the stream of replies to conditional requests has ended: %v\n", err))
			}
			return
		}
		f.session.out.print("note: the stream of replies is connected again\n")
	}
}

// print prints the events of a stream until it ends.
func (f *follower) print(stream *client.Stream) {
	for {
		event, more := stream.Next()
		if stream.ID != "" {
			f.last = stream.ID
		}
		if !more {
			return
		}
		reply, err := client.ParseReply([]byte(event))
		if err != nil {
			f.session.out.print("error: " + err.Error() + "\n")
			continue
		}
		f.session.out.print(syntax.PrintReply(reply))
		f.session.names.saw(reply)
	}
}

// reconnect repeats connect until it succeeds, the gateway refuses, or the session ends.
func (f *follower) reconnect(ctx context.Context) (*client.Stream, error) {
	for pause := reconnectPause; ; pause = min(2*pause, longestReconnectPause) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		stream, err := f.connect(ctx)
		if err == nil || ctx.Err() != nil || errors.As(err, new(errRefused)) {
			return stream, err
		}
	}
}

func (f *follower) stop(cancel context.CancelFunc) {
	if f == nil {
		return
	}
	cancel()
	<-f.done
}
