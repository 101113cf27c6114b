package session

import (
	"context"
	"fmt"
	"net/url"

	"mirador/mir/client"
	"mirador/omis/syntax"
)

// follower prints the replies to conditional requests. If the stream breaks off, it is connected
// again and continues after the last reply. The gateway then reports how many replies were lost.
type follower struct {
	session *Session
	done    chan struct{}
}

// follow starts to print. It ignores a gateway that refuses the stream, since most requests are not
// conditional.
func (s *Session) follow(ctx context.Context) *follower {
	tool := s.config.Tool
	if tool == "" {
		tool = "-"
	}
	stream, err := s.config.Gateway.Events(ctx, "/omis/tools/"+url.PathEscape(tool)+"/replies", "")
	if err != nil {
		return nil
	}
	stream.Connection = func(connected bool) {
		if connected {
			s.out.print("note: the stream of replies is connected again\n")
		} else {
			s.out.print("note: the stream of replies broke off; connecting again\n")
		}
	}
	f := &follower{session: s, done: make(chan struct{})}
	go f.run(ctx, stream)
	return f
}

// run prints replies until the session ends, or the gateway refuses to continue.
func (f *follower) run(ctx context.Context, stream *client.Events) {
	defer close(f.done)
	defer stream.Close()
	for {
		event, err := stream.Next()
		if err != nil {
			if ctx.Err() == nil {
				f.session.out.print(fmt.Sprintf("error: the stream of replies to conditional requests has ended: %v\n", err))
			}
			return
		}
		f.print(event.Data)
	}
}

func (f *follower) print(text string) {
	reply, err := client.ParseReply([]byte(text))
	if err != nil {
		f.session.out.print("error: " + err.Error() + "\n")
		return
	}
	f.session.out.print(syntax.PrintReply(reply))
	f.session.names.saw(reply)
}

func (f *follower) stop(cancel context.CancelFunc) {
	if f == nil {
		return
	}
	cancel()
	<-f.done
}
