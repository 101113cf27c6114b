package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"mirador/mir"
)

const (
	// maxEvent limits the length of a line of a stream. The default of bufio.Scanner is too small
	// for a reply with a memory block.
	maxEvent = 16 << 20

	// These are the first and the longest pause between attempts to connect a stream again.
	reconnectPause        = 200 * time.Millisecond
	longestReconnectPause = 5 * time.Second
)

// Event is an event of a stream.
type Event struct {
	Name string // measurement, reply, or lost
	ID   string
	Data string
}

// Events is a stream of the gateway. If the connection breaks off, it connects again and
// continues after the last event; the gateway then says how many events were lost. One goroutine
// may use it.
type Events struct {
	// Connection, if not nil, is called when the connection has broken off, with false, and
	// when there is a new one, with true.
	Connection func(connected bool)

	client *Client
	ctx    context.Context // of the stream, which outlives a call
	path   string
	last   string // id of the last event
	body   io.ReadCloser
	lines  *bufio.Scanner
}

// Events opens a stream, such as /probes/probe-1/stream. after is the id of the last event that a
// former stream has read, or "". Events returns after the gateway has subscribed, so that no
// later event is missed. The end of ctx ends the stream.
func (c *Client) Events(ctx context.Context, path, after string) (*Events, error) {
	e := &Events{client: c, ctx: ctx, path: path, last: after}
	return e, e.connect()
}

// connect opens a connection that continues after the last event.
func (e *Events) connect() error {
	resp, err := e.client.open(e.ctx, Request{Method: http.MethodGet, Path: e.path, Accept: "text/event-stream", after: e.last})
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if err := (&Reply{Status: resp.StatusCode, Body: body}).Err(); err != nil {
			return err
		}
		return fmt.Errorf("the gateway answered with status %d where a stream was expected", resp.StatusCode)
	}
	e.body, e.lines = resp.Body, bufio.NewScanner(resp.Body)
	e.lines.Buffer(nil, maxEvent)
	return nil
}

// Next waits for the next event. It returns the error of ctx after its end, and an *Error if the
// gateway refuses to continue: the kind is ErrNotFound if the probe or the tool is gone.
func (e *Events) Next() (Event, error) {
	for {
		if event, ok := e.read(); ok {
			if event.Name == "refused" {
				return event, &Error{Status: http.StatusForbidden, Faults: []mir.Fault{{Msg: event.Data}}}
			}
			return event, nil
		}
		e.body.Close()
		if e.ctx.Err() != nil {
			return Event{}, e.ctx.Err()
		}
		e.tell(false)
		if err := e.reconnect(); err != nil {
			return Event{}, err
		}
		e.tell(true)
	}
}

func (e *Events) tell(connected bool) {
	if e.Connection != nil {
		e.Connection(connected)
	}
}

// read reads the next event with data, and returns false at the end of the connection.
func (e *Events) read() (event Event, ok bool) {
	var data []string
	for e.lines.Scan() {
		field, text, _ := strings.Cut(e.lines.Text(), ": ")
		switch field {
		case "event":
			event.Name = text
		case "id":
			event.ID, e.last = text, text
		case "data":
			data = append(data, text)
		case "":
			if len(data) > 0 {
				event.Data = strings.Join(data, "\n")
				return event, true
			}
			event = Event{}
		}
	}
	return event, false
}

// reconnect repeats connect until it succeeds, the gateway refuses, or the stream ends.
func (e *Events) reconnect() error {
	for pause := reconnectPause; ; pause = min(2*pause, longestReconnectPause) {
		select {
		case <-time.After(pause):
		case <-e.ctx.Done():
			return e.ctx.Err()
		}
		if err := e.connect(); err == nil || !passing(err) {
			return err
		}
	}
}

// passing reports whether the same request may succeed later.
func passing(err error) bool {
	return errors.As(err, new(*Unreachable)) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrGateway)
}

// Close closes the stream.
func (e *Events) Close() error { return e.body.Close() }
