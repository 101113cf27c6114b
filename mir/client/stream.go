package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"mirador/mir"
)

// Stream is the stream of a probe's measurement documents. One goroutine may use it.
type Stream struct {
	*Events
	probe *Probe
	ctx   context.Context
}

// Stream opens the probe's stream, on which it sends a document whenever its request's delivery
// says so. When Stream returns, no later document is missed. after is the Number of the last
// document that a former stream has read, or 0. If another client redefines the probe, call Status:
// the stream does not say which definition a document belongs to.
func (p *Probe) Stream(ctx context.Context, after uint64) (*Stream, error) {
	last := ""
	if after > 0 {
		last = strconv.FormatUint(after, 10)
	}
	events, err := p.client.Events(ctx, p.path()+"/stream", last)
	if err != nil {
		return nil, err
	}
	return &Stream{Events: events, probe: p, ctx: ctx}, nil
}

// Readings returns the documents as they come, until the probe is removed or the stream's context
// ends. It survives the gateway's restart. An error is the last element; there is none when the
// probe is removed. The loop closes the stream.
func (s *Stream) Readings() iter.Seq2[*Reading, error] {
	return func(yield func(*Reading, error) bool) {
		defer s.Close()
		for {
			r, err := s.reading()
			if errors.Is(err, ErrNotFound) || !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// reading returns the next document, with the number of lost ones before it.
func (s *Stream) reading() (*Reading, error) {
	lost := 0
	for {
		event, err := s.Next()
		if err != nil {
			return nil, err
		}
		if event.Name == "lost" {
			lost = lossOf(event.Data)
			continue
		}
		decoded, err := answerOf[*mir.Measurement](mir.Decode([]byte(event.Data), mir.ReplyLimits()))
		if err != nil {
			return nil, fmt.Errorf("cannot read a document of the stream: %w", err)
		}
		r := &Reading{Document: decoded, Notice: decoded.Notice, Lost: lost}
		if r.Number, err = strconv.ParseUint(event.ID, 10, 64); err != nil {
			return nil, fmt.Errorf("the stream has an event without a number: %w", err)
		}
		r.Values, err = s.decode(decoded)
		return r, err
	}
}

// decode returns the values of a document. If it does not fit the definition, another client has
// redefined the probe.
func (s *Stream) decode(document *mir.Measurement) ([]Value, error) {
	probe := []*Probe{s.probe}
	values, err := Decompress(definitions(probe), document)
	if err == nil {
		return values, nil
	}
	if _, err := renew(s.ctx, probe); err != nil {
		return nil, err
	}
	return Decompress(definitions(probe), document)
}

// lossOf reads the number of lost events: -1 if it is not known.
func lossOf(data string) int {
	if n, err := strconv.Atoi(data); err == nil {
		return n
	}
	return -1
}
