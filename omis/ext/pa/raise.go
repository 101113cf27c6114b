package pa

import (
	"context"
	"slices"

	"mirador/omis"
	"mirador/omis/service"
	"mirador/omis/syntax"
)

// filter raises a user event if two values are equal (OMIS 8.2.2).
func filter(c *service.Call) ([]omis.Value, error) {
	if !equal(c.Args[0], c.Args[1]) {
		return nil, nil
	}
	return nil, raise(c, event(c.Args[2]))
}

// equal reports whether two values are equal. An integer may equal a floating value.
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

// event returns the token in a parameter, which may be a list of one (OMIS 5.3.2).
func event(v omis.Value) omis.Token {
	if v.Kind == omis.KindList && len(v.List) == 1 {
		v = v.List[0]
	}
	return v.Token()
}

// raise raises a user event with the parameters of the current event. It returns when the
// action lists that wait for the user event are done; until then the current event's
// object stays held.
func raise(c *service.Call, e omis.Token) error {
	var params []omis.Value
	if c.Event != nil {
		params = c.Event.Params
	}
	request := &omis.Request{Actions: []omis.Call{{
		Service: "user_event_raise",
		Args:    []omis.Value{omis.TokenValue(e), omis.List(params...), omis.Int(0)},
	}}}
	r, err := c.Scope.Request(context.Background(), syntax.Print(request), nil)
	if err != nil {
		return err
	}
	return r.Err()
}
