class VulkanPlans:
    def __init__(self, owner): pass
    def attempt(self, plan): return None
