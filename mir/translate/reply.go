package translate

import (
	"iter"

	"mirador/mir"
	"mirador/omis"
)

// replyError returns the error in element 0 of a reply, which concerns the request as a whole.
func replyError(reply omis.Reply) error {
	if len(reply) == 0 {
		return Errorf(Unavailable, mir.Position{}, "the monitor gave an empty reply")
	}
	for _, r := range reply[0] {
		if r.Status.IsError() {
			return FromStatus(r.Status, r.Msg)
		}
	}
	return nil
}

// results yields the results of the i-th action, or an error. It skips objects that ended
// while the request ran, which is no error (OMIS 7.2.2).
func results(reply omis.Reply, i int) iter.Seq2[omis.ObjectResult, error] {
	return func(yield func(omis.ObjectResult, error) bool) {
		if i >= len(reply) {
			yield(omis.ObjectResult{}, Errorf(Unavailable, mir.Position{}, "the monitor answered %d actions, %d expected", len(reply)-1, i))
			return
		}
		for _, r := range reply[i] {
			switch {
			case r.Status&^omis.Fatal == omis.UnknownObject:
			case r.Status.IsError():
				yield(r, FromStatus(r.Status, r.Msg))
				return
			case len(r.Objects) == 0 && len(r.Values) == 0: // OMIS 7.3.1, case 3: all other objects succeeded
			case !yield(r, nil):
				return
			}
		}
	}
}

// Token reads the token that the i-th action created.
func Token(reply omis.Reply, i int) (omis.Token, error) {
	if err := replyError(reply); err != nil {
		return "", err
	}
	for r, err := range results(reply, i) {
		if err != nil {
			return "", err
		}
		if len(r.Values) == 1 && r.Values[0].Kind == omis.KindToken {
			return r.Values[0].Token(), nil
		}
	}
	// results skips objects that have ended. Here such an object is the reason for the
	// failure.
	for _, r := range reply[i] {
		if r.Status.IsError() {
			return "", FromStatus(r.Status, r.Msg)
		}
	}
	return "", Errorf(Unavailable, mir.Position{}, "the monitor created nothing")
}

// Defined reads the token of a conditional request from the reply to its definition (OMIS
// 7.3.1, case 2). It fails if the monitor cannot prepare the event, which the second element
// of the reply tells.
func Defined(reply omis.Reply) (omis.Token, error) {
	if err := Done(reply); err != nil {
		return "", err
	}
	for _, r := range reply[0] {
		if r.Status == omis.CSRDefined && len(r.Values) > 0 {
			return r.Values[0].Token(), nil
		}
	}
	return "", Errorf(Unavailable, mir.Position{}, "the monitor defined no conditional request")
}

// Done returns the first error of a reply, of any action.
func Done(reply omis.Reply) error {
	if len(reply) == 0 {
		return replyError(reply)
	}
	for _, service := range reply {
		for _, r := range service {
			if r.Status.IsError() {
				return FromStatus(r.Status, r.Msg)
			}
		}
	}
	return nil
}
