package engine

import (
	"mirador/omis"
	"mirador/omis/service"
)

// collecting makes a batch of an extension's implementation for many objects.
func collecting(do service.Collect) func(*execution, *call, []object) omis.ServiceResult {
	return func(x *execution, c *call, objs []object) (results omis.ServiceResult) {
		named := tokens(objs)
		object := func(i int) any { return objs[i].(*item).value }
		do(&service.Call{Args: c.args, Event: x.occ, Scope: x}, len(objs), object, func(n int, values []omis.Value, err error) {
			r := omis.ObjectResult{Status: omis.OK, Values: values}
			if err != nil {
				r = failure(err)
			}
			r.Objects, named = named[:n:n], named[n:]
			results = append(results, r)
		})
		return results
	}
}
