package translate

import (
	"bytes"
	"strings"

	"mirador/omis"
)

// Reading many probes by one request costs a small part of a request for each: the monitor
// reads many objects in one pass.

// Many is the request for the values of several plans.
type Many struct {
	// Request reads the values.
	Request string

	at     [][]int        // for each plan, the elements of the reply for its actions
	tokens [][]omis.Token // for each plan and action, the object; "" for an action of its own
}

// ReadMany joins requests of Plan.Read. Actions of the same service on one object each become
// one action on all these objects, and equal actions one action.
func ReadMany(reads []string) *Many {
	m := &Many{at: make([][]int, len(reads)), tokens: make([][]omis.Token, len(reads))}
	var joined [][]byte
	elements := make(map[string]int)
	for i, read := range reads {
		for _, action := range strings.Fields(strings.TrimPrefix(read, ":")) {
			service, token := objectOf(action)
			at, known := elements[service]
			if !known {
				at = len(joined)
				elements[service] = at
				joined = append(joined, []byte(service))
			}
			if token != "" {
				if known {
					joined[at] = append(joined[at], ',')
				}
				joined[at] = append(joined[at], token...)
			}
			m.at[i] = append(m.at[i], 1+at)
			m.tokens[i] = append(m.tokens[i], omis.Token(token))
		}
	}
	for service, at := range elements {
		if strings.HasSuffix(service, "([") {
			joined[at] = append(joined[at], "])"...)
		}
	}
	m.Request = ": " + string(bytes.Join(joined, []byte(" ")))
	return m
}

// objectOf splits an action such as pa_counter_read([pa_c_1]) before its only object. It
// returns another action as it is, without an object.
func objectOf(action string) (service, token string) {
	before, rest, ok := strings.Cut(action, "([")
	token, end, _ := strings.Cut(rest, "]")
	if !ok || end != ")" || token == "" || strings.ContainsAny(token, ",[") {
		return action, ""
	}
	return before + "([", token
}

// Split returns the reply for each plan.
func (m *Many) Split(reply omis.Reply) []omis.Reply {
	all := make([]omis.Reply, len(m.at))
	if len(reply) == 0 || replyError(reply) != nil {
		for i := range all {
			all[i] = reply
		}
		return all
	}
	results := make([]map[omis.Token]*omis.ObjectResult, len(reply))
	for i, at := range m.at {
		own := make(omis.Reply, 1, 1+len(at))
		own[0] = reply[0]
		for j, element := range at {
			switch token := m.tokens[i][j]; {
			case element >= len(reply):
			case token == "":
				own = append(own, reply[element])
			default:
				if results[element] == nil {
					results[element] = byObject(reply[element])
				}
				own = append(own, resultOf(results[element], token))
			}
		}
		all[i] = own
	}
	return all
}

// byObject returns the results of a service by object; a result without objects under "".
func byObject(results omis.ServiceResult) map[omis.Token]*omis.ObjectResult {
	by := make(map[omis.Token]*omis.ObjectResult, len(results))
	for i := range results {
		r := &results[i]
		for _, object := range r.Objects {
			by[object] = r
		}
		if len(r.Objects) == 0 {
			by[""] = r
		}
	}
	return by
}

// resultOf returns the result of one object.
func resultOf(by map[omis.Token]*omis.ObjectResult, token omis.Token) omis.ServiceResult {
	r := by[token]
	if r == nil {
		r = by[""]
	}
	if r == nil {
		return nil
	}
	own := *r
	own.Objects = []omis.Token{token}
	return omis.ServiceResult{own}
}
