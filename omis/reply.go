package omis

import "fmt"

// Status is the outcome of a service (OMIS 7.3.1), with the numbers of the specification.
// An error may have the flag Fatal: the service left the object in an inconsistent state.
type Status int

const (
	OK           Status = 0
	CSRDefined   Status = 2
	CSREnabled   Status = 4
	CSRDisabled  Status = 6
	CSRDeleted   Status = 8
	CSRTriggered Status = 10

	FirstError         Status = 16
	SyntaxError        Status = 16
	UnknownService     Status = 18
	UnsupportedService Status = 20
	UnknownECP         Status = 22
	UnknownObject      Status = 24
	TypeMismatch       Status = 26
	ParameterError     Status = 28
	OSError            Status = 30
	NoPermission       Status = 32
	NoMemory           Status = 34
	InternalError      Status = 36
	UnspecifiedError   Status = 1000

	Fatal Status = 1
)

// IsError reports whether s, with or without Fatal, is an error.
func (s Status) IsError() bool { return s&^Fatal >= FirstError }

var statusNames = map[Status]string{
	OK: "OMIS_OK", CSRDefined: "OMIS_CSR_DEFINED", CSREnabled: "OMIS_CSR_ENABLED",
	CSRDisabled: "OMIS_CSR_DISABLED", CSRDeleted: "OMIS_CSR_DELETED", CSRTriggered: "OMIS_CSR_TRIGGERED",
	SyntaxError: "OMIS_SYNTAX_ERROR", UnknownService: "OMIS_UNKNOWN_SERVICE",
	UnsupportedService: "OMIS_UNSUPPORTED_SERVICE", UnknownECP: "OMIS_UNKNOWN_ECP",
	UnknownObject: "OMIS_UNKNOWN_OBJECT", TypeMismatch: "OMIS_TYPE_MISMATCH",
	ParameterError: "OMIS_PARAMETER_ERROR", OSError: "OMIS_OS_ERROR", NoPermission: "OMIS_NO_PERMISSION",
	NoMemory: "OMIS_NO_MEMORY", InternalError: "OMIS_INTERNAL_ERROR", UnspecifiedError: "OMIS_UNSPECIFIED_ERROR",
}

// String returns the name in the specification, with "|OMIS_FATAL" if the flag is set.
func (s Status) String() string {
	name, ok := statusNames[s&^Fatal]
	if !ok {
		name = "OMIS_UNSPECIFIED_ERROR"
	}
	if s&Fatal != 0 {
		name += "|OMIS_FATAL"
	}
	return name
}

// ObjectResult is the result of one service for one object, or for several objects with
// the same result.
type ObjectResult struct {
	Objects []Token
	Status  Status
	Values  []Value // the result of the service, unless Status is an error
	Msg     string  // the error message, if Status is an error
}

// ServiceResult is the result of one service for all objects it worked on.
type ServiceResult []ObjectResult

// Reply answers a request: element 0 concerns the request as a whole, element i its i-th
// action (OMIS 7.3.1).
type Reply []ServiceResult

// Token returns the token in element i. That is the first value of the result if it is a
// token, usually of a new object; otherwise it is the first object of the result.
func (r Reply) Token(i int) (Token, error) {
	if len(r) > i && len(r[i]) > 0 {
		one := r[i][0]
		if len(one.Values) > 0 && one.Values[0].Kind == KindToken {
			return one.Values[0].Token(), nil
		}
		if len(one.Objects) > 0 {
			return one.Objects[0], nil
		}
	}
	return "", fmt.Errorf("element %d of the reply has no token", i)
}

// Err returns the first error of the reply as an *Error, nil if there is none.
func (r Reply) Err() error {
	for _, service := range r {
		for _, o := range service {
			if o.Status.IsError() {
				return &Error{Status: o.Status, Msg: o.Msg}
			}
		}
	}
	return nil
}
