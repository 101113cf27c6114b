package engine

import "mirador/omis"

// The services for conditional requests (OMIS 8.2.1).

func csrEnable(x *execution, _ *call, objs []object) omis.ServiceResult {
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	results := make(omis.ServiceResult, len(objs))
	for i, err := range x.e.enable(mapped(objs, asCSR)) {
		results[i] = outcome(err, objs[i].Token())
	}
	return results
}

func asCSR(o object) *csr { return o.(*csr) }

func csrDisable(x *execution, _ *call, objs []object) omis.ServiceResult {
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	for _, c := range x.e.disable(mapped(objs, asCSR)...) {
		x.tell(c, omis.CSRDisabled)
	}
	return mapped(objs, func(o object) omis.ObjectResult { return outcome(nil, o.Token()) })
}

func csrDelete(x *execution, _ *call, objs []object) omis.ServiceResult {
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	results := make(omis.ServiceResult, len(objs))
	var list []*csr
	for i, o := range objs {
		r := o.(*csr)
		if r.deleted {
			results[i] = failure(unknownToken(r.token), r.token)
			continue
		}
		results[i] = outcome(nil, r.token)
		list = append(list, r)
	}
	x.e.remove(list...)
	for _, r := range list {
		x.tell(r, omis.CSRDeleted)
	}
	return results
}

// tell reports that a request has changed its state. If its own list did that, the list's reply is sent
// first: By OMIS 7.2.4 a list deletes its request "after it has been executed", and a tool may forget a
// request when it is deleted.
func (x *execution) tell(r *csr, s omis.Status) {
	report := func() { r.tool.replies.push(r.to, r.stateReply(s, omis.ServiceResult{done()})) }
	for own := x; own != nil; own = own.outer {
		if own.csr == r {
			own.after = append(own.after, report)
			return
		}
	}
	report()
}
