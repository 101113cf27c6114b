package engine

import (
	"mirador/omis"
	"mirador/omis/service"
)

// The services that belong to no object (OMIS 8.2.3).

// Versions that the service version reports: of the specification, and of this implementation.
const (
	omisMajor, omisMinor = 2, 0
	implementer          = "Mirador"
	ocmMajor, ocmMinor   = 0, 1
)

func printArgs(_ *execution, c *call) ([]omis.Value, error) { return printed(c.args), nil }

func printLocal(c *service.Call) ([]omis.Value, error) { return printed(c.Args), nil }

func printed(args []omis.Value) []omis.Value {
	list := args[0]
	if list.Kind != omis.KindList {
		list = omis.List(list)
	}
	return []omis.Value{omis.Int(int64(len(list.List))), list}
}

func version(*execution, *call) ([]omis.Value, error) {
	return []omis.Value{
		omis.Int(omisMajor), omis.Int(omisMinor), omis.String(implementer), omis.Int(ocmMajor), omis.Int(ocmMinor),
	}, nil
}

func extensions(x *execution, _ *call) ([]omis.Value, error) {
	list := x.e.catalog.Prefixes()
	return []omis.Value{omis.Int(int64(len(list))), stringList(list)}, nil
}

func services(x *execution, c *call) ([]omis.Value, error) {
	full, partial, ok := x.e.Available().Supported(c.args[0].Str)
	if !ok {
		return nil, omis.Errorf(omis.ParameterError, "there is no extension %q", c.args[0].Str)
	}
	return []omis.Value{
		omis.Int(int64(len(full))), stringList(full),
		omis.Int(int64(len(partial))), stringList(partial),
	}, nil
}
