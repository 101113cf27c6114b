package pa

import (
	"context"
	"slices"

	"mirador/omis"
	"mirador/omis/service"
	"mirador/omis/syntax"
)

// filter raises a user event if a value is the one that is waited for
// (OMIS 8.2.2).
func filter(c *service.Call) ([]omis.Value, error) {
	if !equal(c.Args[0], c.Args[1]) {
		return nil, nil
	}
	return nil, raise(c, event(c.Args[2]))
}

// equal compares values. An integer and a floating value may be equal.
func equal(a, b omis.Value) bool {
	x, isNumber := a.Number()
	y, alsoNumber := b.Number()
	switch {
	case a.Kind == omis.KindInt && b.Kind == omis.KindInt:
		return a.N == b.N && (a.Neg == b.Neg || a.N == 0)
	case isNumber && alsoNumber:
		return x == y
	case a.Kind != b.Kind:
		return false
	case a.Kind == omis.KindList:
		return slices.EqualFunc(a.List, b.List, equal)
	}
	return a.Str == b.Str
}

// event is the token of a parameter, which may stand in a list (OMIS 5.3.2).
func event(v omis.Value) omis.Token {
	if v.Kind == omis.KindList && len(v.List) == 1 {
		v = v.List[0]
	}
	return v.Token()
}

// raise raises a user event for the object at hand, which stays as it is until the
// lists that wait for the event are done, with the parameters of its own event.
func raise(c *service.Call, e omis.Token) error {
	var params []omis.Value
	if c.Event != nil {
		params = c.Event.Params
	}
	request := &omis.Request{Actions: []omis.Call{{
		Service: "user_event_raise",
		Args:    []omis.Value{omis.TokenValue(e), omis.List(params...), omis.Int(0)},
	}}}
	r, err := c.Scope.Request(context.Background(), syntax.Print(request))
	if err != nil {
		return err
	}
	return r.Err()
}
