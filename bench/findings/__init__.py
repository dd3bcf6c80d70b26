"""How much the fleet finds: platforms made from templates, their defects, and what each finder posts."""
