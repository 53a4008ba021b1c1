package script

import (
	"sync"

	"github.com/grafana/sobek"
)

// sharedArrays holds the arrays of k6/data: the JSON of their elements, once
// for all VUs.
type sharedArrays struct {
	mu     sync.Mutex
	byName map[string][]string
}

func dataModule(v *vm) Exports {
	freeze := v.deepFreeze()
	class := func(call sobek.ConstructorCall) *sobek.Object {
		name := call.Argument(0).String()
		fill, ok := sobek.AssertFunction(call.Argument(1))
		switch {
		case !v.inInit:
			v.throw("new SharedArray(%q): shared arrays can be made in init code only", name)
		case name == "" || sobek.IsUndefined(call.Argument(0)):
			v.throw("new SharedArray: want a name as first argument")
		case !ok:
			v.throwType("new SharedArray(%q): want a function that returns an array as second argument, got %s", name, show(call.Argument(1)))
		}
		rows, err := v.program.shared.get(name, func() ([]string, error) { return v.rows(name, fill) })
		if err != nil {
			panic(err)
		}
		return v.rt.NewDynamicArray(&sharedArray{v: v, rows: rows, freeze: freeze})
	}
	return Exports{Named: map[string]any{"SharedArray": class}}
}

// get returns the array of that name. The first to ask makes it; no lock is
// held meanwhile, since fill runs code of the script.
func (s *sharedArrays) get(name string, fill func() ([]string, error)) ([]string, error) {
	s.mu.Lock()
	rows, known := s.byName[name]
	s.mu.Unlock()
	if known {
		return rows, nil
	}
	rows, err := fill()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, known := s.byName[name]; known {
		return first, nil
	}
	s.byName[name] = rows
	return rows, nil
}

// rows calls the function of the script and writes its elements as JSON.
func (v *vm) rows(name string, fill sobek.Callable) ([]string, error) {
	value, err := fill(sobek.Undefined())
	if err != nil {
		return nil, err
	}
	array, ok := value.(*sobek.Object)
	if !ok || array.ClassName() != "Array" {
		v.throwType("new SharedArray(%q): want the function to return an array, got %s", name, show(value))
	}
	stringify, _ := sobek.AssertFunction(v.rt.Get("JSON").ToObject(v.rt).Get("stringify"))
	var rows []string
	var failed error
	v.rt.ForOf(array, func(element sobek.Value) bool {
		text, err := stringify(sobek.Undefined(), element)
		if err != nil {
			failed = err
			return false
		}
		if sobek.IsUndefined(text) { // undefined, functions: JSON has no word for them
			text = v.rt.ToValue("null")
		}
		rows = append(rows, text.String())
		return true
	})
	return rows, failed
}

// deepFreeze returns a function that makes a value unchangeable.
func (v *vm) deepFreeze() sobek.Callable {
	value, err := v.rt.RunProgram(v.program.freeze)
	if err != nil {
		panic(err)
	}
	fn, _ := sobek.AssertFunction(value)
	return fn
}

// freezeSource is compiled once for all VUs.
const freezeSource = `(function freeze(value) {
	if (value !== null && typeof value === 'object') {
		for (const key of Object.keys(value)) freeze(value[key]);
		Object.freeze(value);
	}
	return value;
})`

// sharedArray is one VU's view of a shared array. Elements are made anew on
// each access, so that VUs cannot pass anything to each other through them.
type sharedArray struct {
	v      *vm
	rows   []string
	freeze sobek.Callable
}

var _ sobek.DynamicArray = (*sharedArray)(nil)

func (a *sharedArray) Len() int { return len(a.rows) }

func (a *sharedArray) Get(i int) sobek.Value {
	if i < 0 || i >= len(a.rows) {
		return sobek.Undefined()
	}
	value, err := a.freeze(sobek.Undefined(), a.v.parseJSON([]byte(a.rows[i])))
	if err != nil {
		panic(err)
	}
	return value
}

func (a *sharedArray) Set(int, sobek.Value) bool {
	a.v.throwType("a SharedArray cannot be changed")
	return false
}

func (a *sharedArray) SetLen(int) bool {
	a.v.throwType("a SharedArray cannot be changed")
	return false
}
