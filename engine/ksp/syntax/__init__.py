"""Text to tree: the grammar, the parser, the tree's nodes. The only package that imports lark."""
