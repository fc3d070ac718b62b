"""The checksum of ``sources``: the code of Spack's recipe, so that both say the same."""

from importlib.util import module_from_spec, spec_from_file_location

from assay import paths

_spec = spec_from_file_location('tree', paths.RECIPES / 'packages' / 'assay' / 'tree.py')
assert _spec and _spec.loader, 'a path that ends in .py always has a loader'
tree = module_from_spec(_spec)
_spec.loader.exec_module(tree)

checksum = tree.checksum
