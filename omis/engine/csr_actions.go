package engine

import "mirador/omis"

// The services for conditional requests (OMIS 8.2.1).

func csrEnable(x *execution, c *call) ([]omis.Value, error) {
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	return nil, x.e.enable(c.object.(*csr))
}

func csrDisable(x *execution, c *call) ([]omis.Value, error) {
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	r := c.object.(*csr)
	if x.e.disable(r) {
		r.tool.replies.push(r.to, r.stateReply(omis.CSRDisabled, omis.ServiceResult{done()}))
	}
	return nil, nil
}

func csrDelete(x *execution, c *call) ([]omis.Value, error) {
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	r := c.object.(*csr)
	if r.deleted {
		return nil, unknownToken(r.token)
	}
	x.e.disable(r)
	r.remove()
	r.tool.replies.push(r.to, r.stateReply(omis.CSRDeleted, omis.ServiceResult{done()}))
	return nil, nil
}
