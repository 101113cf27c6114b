package plot

// Chart is a drawing of several lines.
type Chart struct {
	Name   string   `json:"name"` // name of the file, without its suffix
	Title  string   `json:"title"`
	Note   string   `json:"note,omitempty"` // below the chart
	X      Axis     `json:"x"`
	Y      Axis     `json:"y"`
	Series []Series `json:"series"`
}

// Axis is one of the two axes.
type Axis struct {
	Label string  `json:"label"` // with the unit
	Least float64 `json:"least"` // smaller figures are drawn as if they were Least; 0: the least figure
	Kind  Kind    `json:"kind"`
}

// Kind is the format of an axis' numbers.
type Kind string

const (
	Numbers     Kind = "numbers"
	Nanoseconds Kind = "nanoseconds"
	Shares      Kind = "shares" // fractions, shown in percent
)

// Series is one line.
type Series struct {
	Name   string  `json:"name"`
	Colour int     `json:"-"` // index of a distinguishable colour
	Points []Point `json:"points"`
}

// Point is one figure.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}
