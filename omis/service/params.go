package service

import "mirador/omis"

// These functions make the rows of the tables short. Extensions use them, too.

func IntegerParam(name string) Param  { return Param{Name: name, Type: Integer} }
func IntegersParam(name string) Param { return Param{Name: name, Type: Integer, List: true} }
func FloatsParam(name string) Param   { return Param{Name: name, Type: Floating, List: true} }
func StringParam(name string) Param   { return Param{Name: name, Type: String} }
func StringsParam(name string) Param  { return Param{Name: name, Type: String, List: true} }
func BinaryParam(name string) Param   { return Param{Name: name, Type: Binary} }
func AnyParam(name string) Param      { return Param{Name: name, Type: Any, List: true} }

func TokenParam(name string, c omis.Class) Param {
	return Param{Name: name, Type: Token, Class: c}
}

func TokensParam(name string, c omis.Class) Param {
	return Param{Name: name, Type: Token, Class: c, List: true}
}
