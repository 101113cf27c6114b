package client

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
)

// maxEvent limits the length of a line of a stream. The default of bufio.Scanner is too small
// for a reply with a memory block.
const maxEvent = 16 << 20

// Stream reads server-sent events.
type Stream struct {
	ID string // of the last event; open a stream with ?after=ID to continue after it

	body  io.Closer
	lines *bufio.Scanner
}

// Stream opens a stream. It returns after the gateway has subscribed, so that no later event
// is missed. If the gateway refuses, Stream returns its Reply.
func (c *Client) Stream(ctx context.Context, path string) (*Stream, *Reply, error) {
	resp, err := c.open(ctx, Request{Method: http.MethodGet, Path: path, Accept: "text/event-stream"})
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return nil, &Reply{Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Body: body}, err
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	return &Stream{body: resp.Body, lines: lines}, nil, nil
}

// Next returns the data of the next event, and false at the end of the stream.
func (s *Stream) Next() (string, bool) {
	var data []string
	for s.lines.Scan() {
		line := s.lines.Text()
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			data = append(data, text)
		}
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			s.ID = id
		}
		if line == "" && len(data) > 0 {
			return strings.Join(data, "\n"), true
		}
	}
	return "", false
}

// Close closes the stream.
func (s *Stream) Close() error { return s.body.Close() }
