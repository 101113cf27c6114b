package engine

import "mirador/omis"

// The services for conditional requests (OMIS 8.2.1).

func csrEnable(x *execution, _ *call, objs []object) omis.ServiceResult {
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	list := make([]*csr, len(objs))
	for i, o := range objs {
		list[i] = o.(*csr)
	}
	results := make(omis.ServiceResult, len(list))
	for i, err := range x.e.enable(list) {
		results[i] = omis.ObjectResult{Objects: []omis.Token{list[i].token}, Status: omis.OK}
		if err != nil {
			results[i] = failure(err, list[i].token)
		}
	}
	return results
}

func csrDisable(x *execution, _ *call, objs []object) omis.ServiceResult {
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	list := make([]*csr, len(objs))
	results := make(omis.ServiceResult, len(objs))
	for i, o := range objs {
		list[i] = o.(*csr)
		results[i] = omis.ObjectResult{Objects: []omis.Token{list[i].token}, Status: omis.OK}
	}
	for _, c := range x.e.disable(list...) {
		x.tell(c, omis.CSRDisabled)
	}
	return results
}

func csrDelete(x *execution, _ *call, objs []object) omis.ServiceResult {
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	results := make(omis.ServiceResult, len(objs))
	var list []*csr
	for i, o := range objs {
		r := o.(*csr)
		results[i] = omis.ObjectResult{Objects: []omis.Token{r.token}, Status: omis.OK}
		if r.deleted {
			results[i] = failure(unknownToken(r.token), r.token)
			continue
		}
		list = append(list, r)
	}
	x.e.remove(list...)
	for _, r := range list {
		x.tell(r, omis.CSRDeleted)
	}
	return results
}

// tell reports that a request has changed its state. If its own list did that, the list's reply is sent
// first: OMIS 7.2.4 has a list delete its request "after it has been executed", and a tool may forget a
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
