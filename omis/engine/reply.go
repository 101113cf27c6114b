package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"mirador/omis"
	"mirador/omis/service"
	"mirador/omis/syntax"
)

// failure is the result of a service that failed for an object.
func failure(err error, objects ...omis.Token) omis.ObjectResult {
	return omis.ObjectResult{Objects: objects, Status: omis.StatusOf(err), Msg: err.Error()}
}

// outcome is the result of a service for an object: failure, or success if err is nil.
func outcome(err error, object omis.Token) omis.ObjectResult {
	if err != nil {
		return failure(err, object)
	}
	return omis.ObjectResult{Objects: []omis.Token{object}, Status: omis.OK}
}

// whole is a reply about the request as a whole (OMIS 7.3.1).
func whole(results ...omis.ObjectResult) omis.Reply { return omis.Reply{results} }

// refusal reports everything that is wrong with a request, in the order of positions: errors of the parser
// and of the table.
func refusal(parsed error, faults []service.Fault) omis.Reply {
	var list syntax.Errors
	if parsed != nil && !errors.As(parsed, &list) {
		return whole(omis.ObjectResult{Status: omis.SyntaxError, Msg: parsed.Error()})
	}
	all := slices.Clone(faults)
	for _, e := range list {
		all = append(all, service.Fault{Pos: e.Pos, Status: omis.SyntaxError, Msg: e.Msg})
	}
	slices.SortStableFunc(all, func(a, b service.Fault) int { return a.Pos - b.Pos })
	results := make(omis.ServiceResult, len(all))
	for i, f := range all {
		results[i] = omis.ObjectResult{Status: f.Status, Msg: f.Error()}
	}
	return omis.Reply{results}
}

// finish makes the result of a service conform to OMIS 7.3.1.
func (s *step) finish(results omis.ServiceResult, objects int) omis.ServiceResult {
	if s.service.Void() {
		results = onlyErrors(results, objects)
	}
	return unified(results)
}

// onlyErrors shortens the result of a void service to its errors and, if some objects have none, one result
// without an error for all others (OMIS 7.3.1, rule 3).
func onlyErrors(results omis.ServiceResult, objects int) omis.ServiceResult {
	kept := results[:0]
	for _, r := range results {
		if r.Status.IsError() {
			kept = append(kept, r)
			if objects -= len(r.Objects); len(r.Objects) == 0 {
				objects = 0 // nothing was done at all
			}
		}
	}
	if len(kept) == 0 || objects > 0 {
		kept = append(kept, done())
	}
	return kept
}

// done is the result of a void service for all objects that were not named before (OMIS 7.3.1, rule 3).
func done() omis.ObjectResult { return omis.ObjectResult{Status: omis.OK} }

func tokens[O object](list []O) []omis.Token { return mapped(list, O.Token) }

// panicked reports that the implementation of a service panicked, in the recover of its caller. The objects
// may be in any state.
func (e *Engine) panicked(service string, cause any) omis.ObjectResult {
	e.log.Error("a service panicked", "service", service, "panic", cause, "stack", string(debug.Stack()))
	return omis.ObjectResult{
		Status: omis.InternalError | omis.Fatal,
		Msg:    fmt.Sprintf("%s failed inside the monitor: %v", service, cause),
	}
}
